//! One sample told by its difference from the one before: most of a queue stays as it was for a second.
//!
//! On JSON values: an object stands for the members that changed, an array of the same length for its
//! changed elements (`{"#3": …}`), and `{"=": …}` puts a whole value in the place of the old one. The time
//! of the sample itself, which nearly every figure carries, is written `@`.

use serde_json::{Map, Value};

/// Puts a whole value in the place of the old one.
const WHOLE: &str = "=";

/// What turns `old` into `new`; `None` when they are the same.
pub(super) fn diff(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    Some(match (old, new) {
        (Value::Object(a), Value::Object(b))
            if a.len() == b.len() && b.keys().all(|k| a.contains_key(k)) =>
        {
            let changed = b.iter().filter_map(|(k, v)| Some((k.clone(), diff(&a[k], v)?)));
            Value::Object(changed.collect())
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            let changed = pairs.filter_map(|(i, (a, b))| Some((format!("#{i}"), diff(a, b)?)));
            Value::Object(changed.collect())
        }
        (_, Value::Object(_) | Value::Array(_)) => {
            Value::Object(Map::from_iter([(WHOLE.to_owned(), new.clone())]))
        }
        _ => new.clone(),
    })
}

/// Turns `old` into what it was the difference to; `None` when it does not fit.
pub(super) fn patch(old: &mut Value, change: Value) -> Option<()> {
    let Value::Object(mut change) = change else {
        *old = change;
        return Some(());
    };
    if let Some(whole) = change.remove(WHOLE) {
        *old = whole;
        return Some(());
    }
    for (key, change) in change {
        let member = match old {
            Value::Object(members) => members.get_mut(&key)?,
            Value::Array(elements) => elements.get_mut(key.strip_prefix('#')?.parse::<usize>().ok()?)?,
            _ => return None,
        };
        patch(member, change)?;
    }
    Some(())
}

/// Writes `@` for every string that is `time`.
pub(super) fn fold_time(value: &mut Value, time: &str) {
    strings(value, &|s| {
        if s == time { Some("@".to_owned()) } else { s.starts_with('@').then(|| format!("@{s}")) }
    });
}

/// Undoes [`fold_time`].
pub(super) fn unfold_time(value: &mut Value, time: &str) {
    strings(value, &|s| match s.strip_prefix('@') {
        Some("") => Some(time.to_owned()),
        Some(rest) => Some(rest.to_owned()),
        None => None,
    });
}

fn strings(value: &mut Value, change: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::String(s) => {
            if let Some(new) = change(s) {
                *s = new;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|v| strings(v, change)),
        Value::Object(all) => all.values_mut().for_each(|v| strings(v, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_change_can_be_told_and_undone() {
        let values = [
            json!({"a": 1, "b": [1, 2], "c": {"d": null}}),
            json!({"a": 2, "b": [1, 3], "c": {"d": null}}),
            json!({"a": null, "b": [1], "c": {"e": {"=": "#"}}}),
            json!({"a": {"b": 1}, "b": [], "c": "text"}),
            json!({"a": [{"#0": 1}], "b": {"x": [1]}, "c": {"d": 1.5}}),
        ];
        for old in &values {
            for new in &values {
                let mut value = old.clone();
                if let Some(change) = diff(old, new) {
                    patch(&mut value, change).unwrap();
                }
                assert_eq!(value, *new);
            }
        }
    }

    #[test]
    fn the_time_folds_and_nothing_is_taken_for_it() {
        let before = json!({"t": "12:00", "list": ["12:00", "@", "@@x", "y"]});
        let mut value = before.clone();
        fold_time(&mut value, "12:00");
        assert_eq!(value, json!({"t": "@", "list": ["@", "@@", "@@@x", "y"]}));
        unfold_time(&mut value, "12:00");
        assert_eq!(value, before);
    }

    #[test]
    fn a_change_that_does_not_fit_is_refused() {
        assert_eq!(patch(&mut json!({"a": 1}), json!({"b": 1})), None);
        assert_eq!(patch(&mut json!([1]), json!({"#1": 1})), None);
        assert_eq!(patch(&mut json!(1), json!({"a": 1})), None);
    }
}
