//! `results.json`: the rows as they are; here their numbers get nine digits, wherever rows are written as JSON.

use serde_json::{Number, Value};

use super::rows::Rows;

/// More digits than any measurement has; fewer than those that differ between platforms' logarithms.
const DIGITS: usize = 9;

/// The rows as JSON, ended by a line break.
#[must_use]
pub(super) fn render(rows: &Rows) -> String {
    let mut text = serde_json::to_string_pretty(rows).expect("rows are plain data");
    text.push('\n');
    text
}

/// Rounds every fraction in `value`.
pub(super) fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or_default();
            let rounded = format!("{exact:.*e}", DIGITS - 1).parse().ok();
            if let Some(rounded) = rounded.and_then(Number::from_f64) {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_keep_nine_digits_and_whole_numbers_all() {
        let mut value = serde_json::json!([1.0 / 3.0, 18_446_744_073_709_551_615_u64, 1234.5, "x"]);
        round(&mut value);
        assert_eq!(
            value.to_string(),
            "[0.333333333,18446744073709551615,1234.5,\"x\"]"
        );
    }
}
