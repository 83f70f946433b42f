//! One line in the convention of monitoring plugins: state, text, performance data. Source: Monitoring Plugins
//! Development Guidelines, "Plugin Output" and "Performance data".

mod range;

pub use range::Range;

use crate::config::Thresholds;
use crate::model::{Reading, Sample};

/// The states, and the exit codes that stand for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// 0.
    Ok,
    /// 3: something could not be read. Less than a warning where both are there.
    Unknown,
    /// 1.
    Warning,
    /// 2.
    Critical,
}

impl State {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// A figure that can be checked: one row.
pub struct Figure {
    /// Its name in options and in the performance data.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Unit of the performance data: `s`, `ms`, `%`, or nothing for a count.
    unit: &'static str,
    /// Its largest possible value, if there is one.
    most: Option<f64>,
    /// `None` inside: there is nothing to measure, which is well.
    read: fn(&Sample) -> Reading<Option<f64>>,
    /// Warning and critical, unless somebody says otherwise.
    limits: fn(&Thresholds) -> (Option<Range>, Option<Range>),
}

fn count(reading: &Reading<u64>) -> Reading<Option<f64>> {
    reading.map(|n| Some(*n as f64))
}

fn no_limits(_: &Thresholds) -> (Option<Range>, Option<Range>) {
    (None, None)
}

/// Above this it warns, ten times over it is critical: as the dashboard does.
fn tenfold(limit: f64) -> (Option<Range>, Option<Range>) {
    (Some(Range::up_to(limit)), Some(Range::up_to(limit * 10.0)))
}

/// All figures, in the order of the performance data. What one sample cannot know, rates and shares of a minute, is
/// not among them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "ready",
        help: "jobs that are due and not held",
        unit: "",
        most: None,
        read: |s| count(&s.counts.ready),
        limits: no_limits,
    },
    Figure {
        name: "oldest_ready",
        help: "age of the oldest ready job, seconds",
        unit: "s",
        most: None,
        read: |s| s.vitals.oldest_ready.clone(),
        limits: |t| tenfold(t.oldest_ready_s),
    },
    Figure {
        name: "unattended",
        help: "ready jobs while no worker is alive",
        unit: "",
        most: None,
        read: |s| {
            let alive = s.workers.map(|rows| rows.iter().any(|w| w.is_alive(s.taken_at)));
            match (alive.current(), s.workers.trouble()) {
                (Some(true), _) => alive.map(|_| Some(0.0)),
                (Some(false), _) => count(&s.counts.ready),
                (None, Some(why)) => Reading::unknown(why.clone()),
                (None, None) => Reading::default(),
            }
        },
        limits: |_| (None, Some(Range::up_to(0.0))),
    },
    Figure {
        name: "workers",
        help: "workers that are alive",
        unit: "",
        most: None,
        read: |s| s.workers.map(|rows| Some(rows.iter().filter(|w| w.is_alive(s.taken_at)).count() as f64)),
        limits: no_limits,
    },
    Figure {
        name: "running",
        help: "jobs that are held",
        unit: "",
        most: None,
        read: |s| count(&s.counts.running),
        limits: no_limits,
    },
    Figure {
        name: "expired",
        help: "leases past their expiry",
        unit: "",
        most: None,
        read: |s| count(&s.counts.expired),
        limits: no_limits,
    },
    Figure {
        name: "failed",
        help: "jobs that gave up",
        unit: "",
        most: None,
        read: |s| count(&s.counts.failed),
        limits: no_limits,
    },
    Figure {
        name: "queue_usage",
        help: "share of the notification queue in use, percent",
        unit: "%",
        most: Some(100.0),
        read: |s| s.vitals.queue_usage.map(|u| Some(u * 100.0)),
        limits: |t| {
            let percent = |share: f64| Some(Range::up_to(share * 100.0));
            (percent(t.queue_usage_warn), percent(t.queue_usage_critical))
        },
    },
    Figure {
        name: "claim_p99",
        help: "largest p99 of a claim over the workers, milliseconds",
        unit: "ms",
        most: None,
        read: |s| s.vitals.claim_p99_ms.clone(),
        limits: |t| (Some(Range::up_to(t.claim_p99_ms)), None),
    },
    Figure {
        name: "recovery_p95",
        help: "largest p95 of a reconnect over the workers, seconds",
        unit: "s",
        most: None,
        read: |s| s.vitals.recovery_p95.clone(),
        limits: |t| tenfold(t.recovery_p95_s),
    },
    Figure {
        name: "notify_waiters",
        help: "commits that wait for the NOTIFY commit lock",
        unit: "",
        most: None,
        read: |s| s.notify_lock.map(|l| Some(l.waiters as f64)),
        limits: no_limits,
    },
    Figure {
        name: "connections",
        help: "connections in use of those allowed, percent",
        unit: "%",
        most: Some(100.0),
        read: |s| {
            s.connections.map(|(used, most)| (*most > 0).then(|| *used as f64 * 100.0 / *most as f64))
        },
        limits: |_| (Some(Range::up_to(90.0)), None),
    },
];

/// What somebody says instead of the defaults: `NAME=RANGE`, the last of a name counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Of warnings.
    pub warning: Vec<(String, Range)>,
    /// Of critical ones.
    pub critical: Vec<(String, Range)>,
}

/// Reads `NAME=RANGE`.
///
/// # Errors
/// One line that names what is wrong, and the names there are.
pub fn wanted(text: &str) -> Result<(String, Range), String> {
    let (name, range) = text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=RANGE"))?;
    if FIGURES.iter().all(|f| f.name != name) {
        let names: Vec<&str> = FIGURES.iter().map(|f| f.name).collect();
        return Err(format!("no figure is called {name:?}; there are {}", names.join(", ")));
    }
    Ok((name.to_owned(), Range::parse(range)?))
}

/// The line, and the state it stands for: the worst of all figures of all ledgers, critical before warning before
/// unknown.
pub fn check(samples: &[Sample], limits: &Thresholds, wanted: &Wanted) -> (State, String) {
    if samples.is_empty() {
        return (State::Unknown, line(State::Unknown, "no ledger of a known profile in this database"));
    }
    let mut worst = State::Ok;
    let (mut bad, mut data) = (Vec::new(), Vec::new());
    for s in samples {
        for figure in FIGURES {
            let of = |list: &[(String, Range)]| {
                list.iter().rev().find(|(n, _)| n == figure.name).map(|(_, r)| *r)
            };
            let (warn, critical) = (figure.limits)(limits);
            let warn = of(&wanted.warning).or(warn);
            let critical = of(&wanted.critical).or(critical);
            let reading = (figure.read)(s);
            let name = format!("{} {}", s.ledger, figure.name);
            let state = match reading.current() {
                None if warn.is_none() && critical.is_none() => State::Ok,
                None => {
                    let why = reading.trouble().map_or_else(|| "not read".to_owned(), ToString::to_string);
                    bad.push((State::Unknown, format!("{name} {why}")));
                    State::Unknown
                }
                Some(None) => State::Ok,
                Some(Some(value)) => {
                    let over = |range: Option<Range>| range.filter(|r| r.alerts(*value));
                    let found = over(critical)
                        .map(|r| (State::Critical, r))
                        .or_else(|| over(warn).map(|r| (State::Warning, r)));
                    if let Some((state, range)) = found {
                        let said = format!("{name} {}{} ({range})", short(*value), figure.unit);
                        bad.push((state, said));
                        state
                    } else {
                        State::Ok
                    }
                }
            };
            worst = worst.max(state);
            data.push(datum(&name, figure, reading.current().copied().flatten(), warn, critical));
        }
    }
    bad.sort_by_key(|(state, _)| std::cmp::Reverse(*state));
    let text = if bad.is_empty() {
        samples.iter().map(calm).collect::<Vec<_>>().join(", ")
    } else {
        bad.into_iter().map(|(_, said)| said).collect::<Vec<_>>().join(", ")
    };
    (worst, format!("{} | {}", line(worst, &text), data.join(" ")))
}

/// A line without figures.
pub fn line(state: State, text: &str) -> String {
    // what stands behind a bar is taken for performance data, and a second line for more of it
    let text: String = text.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
    format!("PGWAKE {} - {text}", state.word())
}

fn calm(s: &Sample) -> String {
    let ready = s.counts.ready.current().map_or_else(|| "—".to_owned(), ToString::to_string);
    let oldest = s.vitals.oldest_ready.current().copied().flatten();
    let oldest = oldest.map_or_else(String::new, |o| format!(", oldest {}s", short(o)));
    format!("{}: {ready} ready{oldest}", s.ledger)
}

/// Three digits behind the point are enough for everybody.
fn short(value: f64) -> String {
    let rounded = (value * 1e3).round() / 1e3;
    format!("{rounded}")
}

/// `'label'=value[unit];[warn];[critical];[min];[max]`; an unknown value is `U`. A quote within a label is doubled, and it holds no
/// equals sign.
fn datum(
    name: &str,
    figure: &Figure,
    value: Option<f64>,
    warn: Option<Range>,
    critical: Option<Range>,
) -> String {
    let label: String =
        name.chars().map(|c| if c == '=' || c == '|' || c.is_control() { '_' } else { c }).collect();
    let value = value.map_or_else(|| "U".to_owned(), |v| format!("{}{}", short(v), figure.unit));
    let text = |range: Option<Range>| range.map_or_else(String::new, |r| r.to_string());
    let most = figure.most.map_or_else(String::new, |m| m.to_string());
    format!("'{}'={value};{};{};0;{most}", label.replace('\'', "''"), text(warn), text(critical))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Trouble;
    use chrono::DateTime;

    fn calm_sample(ledger: &str) -> Sample {
        let at = DateTime::UNIX_EPOCH;
        let mut s = Sample::empty(ledger, at);
        for count in [
            &mut s.counts.ready,
            &mut s.counts.scheduled,
            &mut s.counts.running,
            &mut s.counts.expired,
            &mut s.counts.failed,
        ] {
            *count = Reading::exact(0, at);
        }
        s.vitals.oldest_ready = Reading::exact(None, at);
        s.vitals.queue_usage = Reading::exact(0.0001, at);
        s.vitals.claim_p99_ms = Reading::exact(Some(2.5), at);
        s.vitals.recovery_p95 = Reading::exact(None, at);
        s.workers = Reading::exact(Vec::new(), at);
        s.notify_lock = Reading::exact(crate::model::NotifyLock::default(), at);
        s.connections = Reading::exact((5, 100), at);
        s
    }

    fn checked(s: Sample, wanted: &Wanted) -> (State, String) {
        check(&[s], &Thresholds::default(), wanted)
    }

    #[test]
    fn a_calm_queue_is_ok_with_every_figure_as_performance_data() {
        let (state, line) = checked(calm_sample("jobs"), &Wanted::default());
        assert_eq!(state.code(), 0);
        let (text, data) = line.split_once(" | ").unwrap();
        assert_eq!(text, "PGWAKE OK - jobs: 0 ready");
        assert!(data.contains("'jobs oldest_ready'=U;60;600;0;"), "{data}");
        assert!(data.contains("'jobs queue_usage'=0.01%;10;30;0;100"), "{data}");
        assert!(data.contains("'jobs connections'=5%;90;;0;100"), "{data}");
        assert_eq!(data.matches("'jobs ").count(), FIGURES.len(), "{data}");
    }

    #[test]
    fn the_worst_counts_and_is_named_first() {
        let at = DateTime::UNIX_EPOCH;
        let mut s = calm_sample("jobs");
        s.vitals.oldest_ready = Reading::exact(Some(75.0), at);
        let (state, line) = checked(s.clone(), &Wanted::default());
        assert_eq!(state.code(), 1);
        assert!(line.starts_with("PGWAKE WARNING - jobs oldest_ready 75s (60) | "), "{line}");
        // due work, and no worker is alive
        s.counts.ready = Reading::at_least(10_000, at);
        let (state, line) = checked(s.clone(), &Wanted::default());
        assert_eq!(state.code(), 2);
        assert!(
            line.starts_with("PGWAKE CRITICAL - jobs unattended 10000 (0), jobs oldest_ready 75s (60) | "),
            "{line}"
        );
        // a warning beside something unknown is a warning
        let mut s = calm_sample("jobs");
        s.vitals.oldest_ready = Reading::exact(Some(75.0), at);
        s.vitals.queue_usage = Reading::unknown(Trouble::TimedOut);
        assert_eq!(checked(s, &Wanted::default()).0, State::Warning);
    }

    #[test]
    fn what_could_not_be_read_is_unknown_and_a_kept_value_is_not_taken_for_now() {
        let mut s = calm_sample("jobs");
        s.vitals.oldest_ready =
            Reading::unknown(Trouble::TimedOut).or_last(&Reading::exact(Some(1.0), DateTime::UNIX_EPOCH));
        let (state, line) = checked(s, &Wanted::default());
        assert_eq!(state.code(), 3);
        assert!(line.starts_with("PGWAKE UNKNOWN - jobs oldest_ready timed out | "), "{line}");
        assert!(line.contains("'jobs oldest_ready'=U;60;600;0;"), "{line}");
        assert_eq!(check(&[], &Thresholds::default(), &Wanted::default()).0.code(), 3);
    }

    #[test]
    fn what_somebody_wants_counts_and_the_last_of_a_name() {
        let wanted = Wanted {
            warning: vec![wanted("failed=5").unwrap(), wanted("failed=~:0").unwrap()],
            critical: vec![wanted("workers=1:").unwrap()],
        };
        let mut s = calm_sample("jobs");
        s.counts.failed = Reading::exact(3, DateTime::UNIX_EPOCH);
        let (state, line) = checked(s, &wanted);
        assert_eq!(state.code(), 2);
        assert!(
            line.starts_with("PGWAKE CRITICAL - jobs workers 0 (1:), jobs failed 3 (~:0) | "),
            "{line}"
        );
        let why = super::wanted("oldest=3").unwrap_err();
        assert!(why.contains("no figure is called \"oldest\"") && why.contains("oldest_ready"), "{why}");
    }

    #[test]
    fn a_hostile_name_breaks_neither_the_text_nor_the_performance_data() {
        let mut s = calm_sample("it's | = a\nname");
        s.vitals.queue_usage =
            Reading::unknown(Trouble::Failed { sqlstate: None, text: "a | b\u{1b}[2J".into() });
        let (_, line) = checked(s, &Wanted::default());
        assert_eq!(line.matches('|').count(), 1, "{line}");
        assert!(!line.chars().any(char::is_control), "{line}");
        assert!(line.contains("'it''s _ _ a_name ready'=0;;;0;"), "{line}");
    }
}
