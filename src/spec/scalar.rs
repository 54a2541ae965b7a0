//! Single values as YAML 1.2 reads them, without the guesses of older versions: whole numbers, numbers, true and false.

use serde_json::Value;

/// A whole number: digits, with `_` between them if that helps.
///
/// # Errors
/// What could be written instead, if that is clear.
pub(super) fn whole(text: &str) -> Result<i128, Option<String>> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let plain = digits.replace('_', "");
    if !is_digits(&plain) || !digits.split('_').all(is_digits) {
        return Err(whole_hint(text));
    }
    if plain.len() > 1 && plain.starts_with('0') {
        let number = plain.trim_start_matches('0');
        let number = if number.is_empty() { "0" } else { number };
        return Err(Some(format!(
            "write `{number}`: with the `0` first, some read it as an octal number"
        )));
    }
    match plain.parse::<i128>() {
        Ok(number) if plain.len() <= 30 => Ok(sign * number),
        _ => Err(Some("the number is too large".to_owned())),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// How a number that is no whole number on paper would be written as one.
fn whole_hint(text: &str) -> Option<String> {
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
    for (prefix, radix) in radix {
        if let Some(digits) = text.strip_prefix(prefix) {
            let number = i64::from_str_radix(&digits.replace('_', ""), radix).ok()?;
            return Some(format!("write `{number}`"));
        }
    }
    let number = number(text)?;
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return Some(format!("write `{number:.0}`"));
    }
    None
}

/// A number with an optional fraction and exponent.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = text.replace('_', "");
    let written = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E');
    let good = plain.chars().all(written)
        && plain.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'))
        && text.ends_with(|c: char| c.is_ascii_digit());
    let number = plain.parse::<f64>().ok().filter(|_| good)?;
    number.is_finite().then_some(number)
}

/// `true` or `false`; nothing else.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The one of `true` and `false` that another word for it stands for.
pub(super) fn boolean_hint(text: &str) -> Option<&'static str> {
    match text.to_lowercase().as_str() {
        "yes" | "y" | "on" | "true" | "1" => Some("true"),
        "no" | "n" | "off" | "false" | "0" => Some("false"),
        _ => None,
    }
}

/// The value of a text without quotes: a boolean, a number, or else the text itself.
///
/// # Errors
/// What could be written instead of a number that is read in several ways.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    if let "true" | "True" | "TRUE" | "false" | "False" | "FALSE" = text {
        return Ok(Value::Bool(text.eq_ignore_ascii_case("true")));
    }
    match (whole(text), number(text)) {
        (Ok(whole), _) => match (u64::try_from(whole), i64::try_from(whole)) {
            (Ok(number), _) => Ok(number.into()),
            (_, Ok(number)) => Ok(number.into()),
            _ => Err("the number is too large".to_owned()),
        },
        (Err(Some(help)), None) => Err(help),
        (Err(Some(help)), Some(_)) if has_zero_first(text) => Err(help),
        (Err(_), Some(number)) => Ok(number.into()),
        (Err(None), None) => Ok(text.into()),
    }
}

fn has_zero_first(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_have_underscores_but_no_zero_first() {
        assert_eq!(whole("10_000_000"), Ok(10_000_000));
        assert_eq!(whole("0"), Ok(0));
        assert_eq!(whole("-5"), Ok(-5));
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX.into()));
        for text in ["", "1_", "twenty", "1.5"] {
            assert_eq!(whole(text), Err(None), "{text}");
        }
        for (text, instead) in [
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1e6", "1000000"),
            ("8.0", "8"),
            ("1__0", "10"),
        ] {
            assert_eq!(whole(text), Err(Some(format!("write `{instead}`"))));
        }
        assert!(whole("017").unwrap_err().unwrap().starts_with("write `17`"));
        assert!(whole(&"9".repeat(100)).is_err());
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!(number("1_500.5"), Some(1500.5));
        assert_eq!(number("1e3"), Some(1000.0));
        for text in ["inf", ".inf", "nan", "1e999", "0x10", "1.", "e5", ""] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn only_true_and_false_are_booleans() {
        assert_eq!(boolean("true"), Some(true));
        for text in ["True", "yes", "on", "1"] {
            assert_eq!(boolean(text), None);
            assert_eq!(boolean_hint(text), Some("true"));
        }
    }
}
