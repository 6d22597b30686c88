//! What is to go wrong, and with which request.

use super::wire::Request;

/// What happens to a request or its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Both pass.
    Pass,
    /// The server gets the request; its reply is swallowed and the connection is cut.
    LoseReply,
    /// The server gets the request and those behind it; their replies are swallowed, and the client sees the end of what it
    /// reads.
    HalfClose,
    /// The server gets the request; its reply waits for `go`.
    HoldReply,
    /// The server never gets the request, and the connection is cut once the replies before it have passed.
    CutBefore,
}

/// Which request springs a trap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    /// The n-th request from now on, over all connections; 1 is the next.
    Nth(u64),
    /// The next one that contains these bytes.
    Containing(Vec<u8>),
}

/// The traps that no request has sprung yet, in the order in which they were set.
#[derive(Debug, Default)]
pub(super) struct Traps {
    set: Vec<(Which, Fate)>,
}

impl Traps {
    pub(super) fn set(&mut self, which: Which, fate: Fate) {
        self.set.push((which, fate));
    }

    pub(super) fn len(&self) -> usize {
        self.set.len()
    }

    /// The fate of this request. It springs one trap at most; another that waited for it too gets the next.
    pub(super) fn fate(&mut self, request: &Request) -> Fate {
        let mut sprung = None;
        self.set.retain_mut(|(which, fate)| {
            let due = match which {
                Which::Nth(count) => {
                    *count = count.saturating_sub(1);
                    *count == 0
                }
                Which::Containing(text) => request.contains(text),
            };
            if due && sprung.is_none() {
                sprung = Some(*fate);
                return false;
            }
            true
        });
        sprung.unwrap_or(Fate::Pass)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Tap;
    use super::*;

    fn request(key: &str) -> Request {
        let bytes = format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len());
        Request::read(&mut Tap::new(bytes.as_bytes()))
            .unwrap()
            .unwrap()
    }

    #[test]
    fn counts_requests_from_when_it_was_set() {
        let mut traps = Traps::default();
        assert_eq!(traps.fate(&request("a")), Fate::Pass);
        traps.set(Which::Nth(2), Fate::LoseReply);
        let fates = [1, 2, 3].map(|_| traps.fate(&request("a")));
        assert_eq!(fates, [Fate::Pass, Fate::LoseReply, Fate::Pass]);
    }

    #[test]
    fn two_traps_for_one_request_take_two_requests() {
        let mut traps = Traps::default();
        traps.set(Which::Nth(1), Fate::LoseReply);
        traps.set(Which::Nth(1), Fate::CutBefore);
        traps.set(Which::Containing(b"key".to_vec()), Fate::HoldReply);
        let fates = [1, 2, 3].map(|_| traps.fate(&request("key")));
        assert_eq!(fates, [Fate::LoseReply, Fate::CutBefore, Fate::HoldReply]);
        assert_eq!(traps.len(), 0);
    }

    #[test]
    fn waits_for_its_text() {
        let mut traps = Traps::default();
        traps.set(Which::Containing(b"key".to_vec()), Fate::LoseReply);
        assert_eq!(traps.fate(&request("other")), Fate::Pass);
        assert_eq!(traps.fate(&request("a:key:b")), Fate::LoseReply);
        assert_eq!(traps.fate(&request("a:key:b")), Fate::Pass);
    }
}
