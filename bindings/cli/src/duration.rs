//! Durations as people write and read them.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads `500ms`, `30s`, `15m`, `12h` or `7d`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, millis)| number.parse::<u64>().ok()?.checked_mul(*millis));
    match millis {
        Some(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err("a duration is a number and a unit (ms, s, m, h, d), such as 15m".to_owned()),
    }
}

/// At most two units, the largest first: `1d 3h`, `14m 59s`, `250ms`.
pub(crate) fn shown(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    // From the second on, milliseconds tell nobody anything.
    let mut rest = millis / 1_000 * 1_000;
    let mut parts = Vec::with_capacity(2);
    for (unit, size) in UNITS.iter().skip(1).rev() {
        if (rest >= *size || !parts.is_empty()) && parts.len() < 2 {
            parts.push((rest / size, unit));
            rest %= size;
        }
    }
    let told = parts.iter().filter(|(number, _)| *number > 0);
    let told: Vec<_> = told
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    told.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("15m", 900_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in [
            "",
            "15",
            "m",
            "0s",
            "-1s",
            "1.5h",
            "15 m",
            "15M",
            "99999999999999999999s",
            "9999999999999999d",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn two_units_are_enough() {
        for (millis, text) in [
            (0, "0ms"),
            (250, "250ms"),
            (1_999, "1s"),
            (899_000, "14m 59s"),
            (900_000, "15m"),
            (97_200_000, "1d 3h"),
            (86_401_000, "1d"),
            (3_601_000, "1h"),
        ] {
            assert_eq!(shown(Duration::from_millis(millis)), text);
        }
    }
}
