//! What is known before anything is connected.

use serde::{Deserialize, Serialize};

use crate::config::{Keymap, Thresholds};
use crate::model::Fault;

/// Whether a worker can run inside this program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerSetup {
    /// Yes, with this handler.
    Available {
        /// The handler's name.
        handler: String,
    },
    /// No; how to configure one.
    Unavailable {
        /// One sentence.
        how: String,
    },
}

/// What is known before anything is connected; a recording begins with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Where the connection goes, shown until the server has answered; never a password.
    pub target: String,
    /// A name for the target that is always shown, such as `PROD`.
    pub label: Option<String>,
    /// Colour of that name: a colour name, `#rrggbb` or an index.
    pub bar: Option<String>,
    /// Faults that can be injected; empty outside the demo.
    pub faults: Vec<Fault>,
    /// Whether a worker can run here.
    pub worker: WorkerSetup,
    /// What it would run for each job. An argument may be a secret, so it is in no recording.
    #[serde(skip)]
    pub runs: Option<String>,
    /// Why actions are off on this side, if they are.
    pub read_only: Option<String>,
    /// The keys. They belong to the person, not to a recording.
    #[serde(skip)]
    pub keys: Keymap,
    /// Names of the themes, in the order of the theme key.
    #[serde(skip)]
    pub themes: Vec<String>,
    /// The limits of the vital signs.
    pub thresholds: Thresholds,
    /// The fallback interval of the workers, seconds.
    pub fallback_s: f64,
    /// The usual length of a lease, seconds: what a full expiry bar stands for.
    pub lease_s: f64,
    /// Seconds east of UTC in which times are shown. `command::screen` sets it to the local offset.
    pub utc_offset_s: i32,
    /// Whether a job's payload is shown without being asked for.
    pub show_payloads: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self::new("")
    }
}

impl Setup {
    /// A plain dashboard on `target`: no label, no faults, no worker.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            label: None,
            bar: None,
            faults: Vec::new(),
            worker: WorkerSetup::Unavailable { how: "no handler is configured".to_owned() },
            runs: None,
            read_only: None,
            keys: Keymap::default(),
            themes: Vec::new(),
            thresholds: Thresholds::default(),
            fallback_s: 30.0,
            lease_s: 120.0,
            utc_offset_s: 0,
            show_payloads: false,
        }
    }
}
