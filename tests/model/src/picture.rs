//! The picture of a lease's life: boxes and arrows at fixed places, as many of them as the worlds have shown.

use std::fmt::Write;

use crate::life::{Cause, Stage, Transitions};

/// Where the picture is, from the root of the sources.
pub(crate) const FILE: &str = "docs/lease.svg";

const SIZE: (u32, u32) = (1200, 470);

/// The size of a box.
const WIDTH: i32 = 160;
const HEIGHT: i32 = 52;

/// From one line of a text to the next.
const LINE: i32 = 14;

/// A box.
struct Place {
    stage: Stage,
    middle: (i32, i32),
    name: &'static str,
    note: &'static str,
}

/// An arrow, its way, and what stands beside it, one line below the other, the first of them there.
struct Arrow {
    from: Stage,
    to: Stage,
    path: &'static str,
    says: &'static [&'static str],
    at: (i32, i32),
}

#[rustfmt::skip]
const PLACES: [Place; 14] = [
    place(Stage::Asking, (150, 110), "Asking", "all nodes at once"),
    place(Stage::WritingBack, (420, 110), "Writing back", "the highest fence"),
    place(Stage::BackingOff, (150, 270), "Backing off", "waiting for the lock"),
    place(Stage::Undoing, (420, 270), "Undoing", "on all nodes"),
    place(Stage::Refused, (285, 410), "Refused", "with an error"),
    place(Stage::Held, (690, 110), "Held", ""),
    place(Stage::Renewing, (910, 110), "Renewing", "still held"),
    place(Stage::Leaving, (910, 270), "Letting go", "after the renewal"),
    place(Stage::Releasing, (690, 270), "Releasing", "on all nodes"),
    place(Stage::Released, (600, 410), "Released", ""),
    place(Stage::Unknown, (780, 410), "Unanswered", "it ends with its TTL"),
    place(Stage::Unreachable, (1110, 70), "Lost: unreachable", ""),
    place(Stage::Expired, (1110, 160), "Lost: expired", ""),
    place(Stage::TakenOver, (1110, 270), "Lost: taken over", ""),
];

#[rustfmt::skip]
const ARROWS: [Arrow; 28] = [
    arrow(Stage::Idle, Stage::Asking, "M28 110H70", &[], (0, 0)),
    arrow(Stage::Asking, Stage::WritingBack, "M230 110H340", &["a quorum", "of several"], (285, 90)),
    arrow(Stage::Asking, Stage::Held, "M170 84C220 20 590 20 660 84", &["granted by the only node"], (415, 30)),
    arrow(Stage::Asking, Stage::BackingOff, "M130 136V244", &["another's"], (98, 195)),
    arrow(Stage::BackingOff, Stage::Asking, "M158 244V136", &["time,", "or told"], (186, 188)),
    arrow(Stage::Asking, Stage::Undoing, "M224 136L364 244", &["in vain"], (314, 184)),
    arrow(Stage::Undoing, Stage::Asking, "M338 250L198 136", &["told"], (232, 184)),
    arrow(Stage::Undoing, Stage::BackingOff, "M340 270H230", &["a fresh token"], (285, 288)),
    arrow(Stage::Asking, Stage::Refused, "M90 136C40 200 40 400 205 414", &["an error"], (50, 330)),
    arrow(Stage::BackingOff, Stage::Refused, "M170 296C180 340 200 370 230 384", &["the wait", "is over"], (158, 345)),
    arrow(Stage::Undoing, Stage::Refused, "M400 296C390 340 370 370 340 384", &["the wait", "is over"], (418, 345)),
    arrow(Stage::WritingBack, Stage::Undoing, "M420 136V244", &["in vain"], (446, 195)),
    arrow(Stage::WritingBack, Stage::Held, "M500 110H610", &["written by", "a quorum"], (555, 90)),
    arrow(Stage::Held, Stage::Renewing, "M770 98H830", &["it is time"], (800, 86)),
    arrow(Stage::Renewing, Stage::Held, "M830 122H770", &["answered,", "or not"], (800, 140)),
    arrow(Stage::Held, Stage::Releasing, "M690 136V244", &["let go of"], (660, 195)),
    arrow(Stage::Renewing, Stage::Leaving, "M910 136V244", &["let go of"], (884, 204)),
    arrow(Stage::Renewing, Stage::Releasing, "M856 136L740 244", &["let go of"], (800, 204)),
    arrow(Stage::Leaving, Stage::Releasing, "M830 270H770", &["it is over"], (800, 288)),
    arrow(Stage::Releasing, Stage::Released, "M660 296L620 384", &[], (0, 0)),
    arrow(Stage::Releasing, Stage::Unknown, "M720 296L760 384", &[], (0, 0)),
    arrow(Stage::Releasing, Stage::Expired, "M770 258C850 226 960 226 1030 182", &[], (0, 0)),
    arrow(Stage::Releasing, Stage::TakenOver, "M760 296C880 340 1020 340 1090 298", &["another's"], (930, 344)),
    arrow(Stage::Held, Stage::Expired, "M716 136C770 180 930 196 1028 166", &["its time is over"], (958, 186)),
    arrow(Stage::Held, Stage::Unreachable, "M700 84C780 30 930 30 1028 58", &["its time is over, and nobody has answered"], (850, 30)),
    arrow(Stage::Renewing, Stage::Expired, "M990 122L1028 144", &[], (0, 0)),
    arrow(Stage::Renewing, Stage::Unreachable, "M990 100L1028 82", &[], (0, 0)),
    arrow(Stage::Renewing, Stage::TakenOver, "M966 136C1000 190 1030 214 1066 244", &["another's"], (1046, 214)),
];

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;text-anchor:middle;fill:#1f2328}
.name{font-weight:600;font-size:14px}
.note,.says{font-size:11.5px;fill:#57606a}
.says{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.paper{fill:#fff;stroke:#d0d7de}
.box{fill:#f6f8fa;stroke:#57606a}
.lease{fill:#dafbe1;stroke:#1a7f37}
.end{fill:#eaeef2;stroke:#57606a}
.lost{fill:#ffebe9;stroke:#cf222e}
.arrow{fill:none;stroke:#57606a;stroke-width:1.4;marker-end:url(#tip)}
#tip path,.dot{fill:#57606a}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}
.note,.says{fill:#9da7b1}
.says{stroke:#0d1117}
.paper{fill:#0d1117;stroke:#30363d}
.box{fill:#161b22;stroke:#8b949e}
.lease{fill:#12361f;stroke:#3fb950}
.end{fill:#21262d;stroke:#8b949e}
.lost{fill:#43171a;stroke:#f85149}
.arrow{stroke:#8b949e}
#tip path,.dot{fill:#8b949e}
}
";

/// Draws what was seen as SVG; fails, and says with what, if something was seen that has no place yet.
pub(crate) fn drawn(seen: &Transitions) -> Result<String, String> {
    let has_arrow = |(from, to): &&(Stage, Stage)| {
        let mut arrows = ARROWS.iter();
        arrows.any(|arrow| (arrow.from, arrow.to) == (*from, *to))
    };
    if let Some(strange) = seen.keys().find(|transition| !has_arrow(transition)) {
        return Err(format!("the picture has no place for {strange:?}"));
    }
    let (width, height) = SIZE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">The life of a lease: each arrow is a step that the model has seen</title>\n\
         <style>\n{STYLE}</style>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <rect class=\"paper\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n\
         <circle class=\"dot\" cx=\"22\" cy=\"110\" r=\"6\"/>\n",
        width - 1,
        height - 1
    );
    for arrow in &ARROWS {
        if let Some(causes) = seen.get(&(arrow.from, arrow.to)) {
            draw_arrow(&mut svg, arrow, causes);
        }
    }
    // What is said stands on top of all arrows.
    for arrow in &ARROWS {
        if seen.contains_key(&(arrow.from, arrow.to)) {
            label_arrow(&mut svg, arrow);
        }
    }
    let is_seen = |place: &&Place| seen.keys().any(|(_, to)| *to == place.stage);
    for place in PLACES.iter().filter(is_seen) {
        draw_place(&mut svg, place);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

const fn place(stage: Stage, middle: (i32, i32), name: &'static str, note: &'static str) -> Place {
    Place {
        stage,
        middle,
        name,
        note,
    }
}

const fn arrow(
    from: Stage,
    to: Stage,
    path: &'static str,
    says: &'static [&'static str],
    at: (i32, i32),
) -> Arrow {
    Arrow {
        from,
        to,
        path,
        says,
        at,
    }
}

fn draw_arrow(svg: &mut String, arrow: &Arrow, causes: &[Cause]) {
    let causes: Vec<&str> = causes.iter().map(|cause| word(*cause)).collect();
    let (path, title) = (arrow.path, causes.join(", "));
    let _ = writeln!(
        svg,
        "<path class=\"arrow\" d=\"{path}\"><title>{title}</title></path>"
    );
}

fn label_arrow(svg: &mut String, arrow: &Arrow) {
    let (x, mut y) = arrow.at;
    for line in arrow.says {
        let _ = writeln!(
            svg,
            "<text class=\"says\" x=\"{x}\" y=\"{y}\">{line}</text>"
        );
        y += LINE;
    }
}

fn draw_place(svg: &mut String, place: &Place) {
    let ((x, y), kind) = (place.middle, kind(place.stage));
    let (left, top) = (x - WIDTH / 2, y - HEIGHT / 2);
    let base = if place.note.is_empty() { y + 5 } else { y - 2 };
    let _ = write!(
        svg,
        "<rect class=\"{kind}\" x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/>\
         <text class=\"name\" x=\"{x}\" y=\"{base}\">{}</text>",
        place.name
    );
    if !place.note.is_empty() {
        let (base, note) = (y + 15, place.note);
        let _ = write!(
            svg,
            "<text class=\"note\" x=\"{x}\" y=\"{base}\">{note}</text>"
        );
    }
    svg.push('\n');
}

fn kind(stage: Stage) -> &'static str {
    match stage {
        Stage::Held | Stage::Renewing => "lease",
        Stage::Expired | Stage::Unreachable | Stage::TakenOver => "lost",
        Stage::Refused | Stage::Released | Stage::Unknown => "end",
        _ => "box",
    }
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::Caller => "the caller wants it",
        Cause::Answer => "a node has answered",
        Cause::Cut => "a connection was lost",
        Cause::Notice => "it was told of a release",
        Cause::Time => "it is time",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_drawn_and_nothing_else() {
        let (held, renewing) = (Stage::Held, Stage::Renewing);
        let mut seen = Transitions::from([((held, renewing), vec![Cause::Time])]);
        let svg = drawn(&seen).unwrap();
        assert_eq!(svg.matches("class=\"arrow\"").count(), 1);
        assert!(svg.contains("Renewing") && !svg.contains("Releasing"));
        seen.insert((Stage::Released, held), vec![Cause::Answer]);
        assert!(drawn(&seen).unwrap_err().contains("(Released, Held)"));
    }
}
