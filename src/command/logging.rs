//! Diagnostics to a file, never to the terminal: the screen is drawn on it.

use std::fs::OpenOptions;
use std::str::FromStr;
use std::sync::Mutex;

use etcetera::BaseStrategy;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// With `PGWAKE_LOG` (or `RUST_LOG`) set, such as `debug`, writes to `pgwake.log` in the state folder.
/// Without, or when the file cannot be opened, nothing is logged.
pub(super) fn start() {
    let Some(filter) = ["PGWAKE_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok())
        .and_then(|text| Targets::from_str(&text).ok())
    else {
        return;
    };
    let Ok(base) = etcetera::choose_base_strategy() else { return };
    let folder = base.state_dir().unwrap_or_else(|| base.data_dir()).join("pgwake");
    let file = std::fs::create_dir_all(&folder)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(folder.join("pgwake.log")));
    let Ok(file) = file else { return };
    let layer = fmt::layer().with_ansi(false).with_writer(Mutex::new(file)).with_filter(filter);
    let _ = tracing_subscriber::registry().with(layer).try_init();
}
