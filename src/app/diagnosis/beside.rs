//! What is wrong beside the answer: a queue may drain while something else breaks, and the line that
//! says so must not read as all fine.

use super::{Diagnosis, Evidence, Rule};
use crate::app::ListenState;
use crate::app::health::{Level, Vital};
use crate::text::{age, percent};

/// The worst of what the answer has not said itself, in two or three words.
fn worst(e: &Evidence<'_>, said: Rule) -> Option<(Level, String)> {
    // of an old sample nothing is said
    if matches!(said, Rule::Disconnected | Rule::NotYet | Rule::Stale) {
        return None;
    }
    let vitals = &e.sample?.vitals;
    let vital = |vital: Vital, text: fn(f64) -> String| {
        let value = (*vital.reading(vitals).current()?)?;
        Some((vital.level(vitals, e.limits), format!("{} {}", vital.title(), text(value))))
    };
    let deaf = match e.listen {
        ListenState::Down { .. } => Some((Level::Warn, "not listening: polling".to_owned())),
        ListenState::Deaf { .. } => Some((Level::Warn, "deaf to wake-ups: polling".to_owned())),
        ListenState::Connecting | ListenState::Up { .. } | ListenState::Off => None,
    };
    let found = [
        vital(Vital::QueueUsage, percent),
        deaf.filter(|_| said != Rule::WakeupsMissing),
        vital(Vital::ClaimSuccess, percent).filter(|_| said != Rule::Contended),
        vital(Vital::Recovery, age),
    ];
    let mut out: Option<(Level, String)> = None;
    for (level, text) in found.into_iter().flatten().filter(|(level, _)| *level >= Level::Warn) {
        if out.as_ref().is_none_or(|(worst, _)| level > *worst) {
            out = Some((level, text));
        }
    }
    out
}

/// The answer with the worst thing beside it: at its head where all else is well, behind it otherwise.
pub(super) fn with(mut answer: Diagnosis, e: &Evidence<'_>) -> Diagnosis {
    let Some((level, text)) = worst(e, answer.rule) else { return answer };
    if answer.level == Level::Ok {
        answer.headline = format!("{}, but {text}", answer.headline);
    } else {
        answer.detail = format!("{} · {text}", answer.detail);
    }
    answer.level = answer.level.max(level);
    answer
}
