//! The channels of one client on its one connection for them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::error::{Code, Error};
use crate::step::{Command, Reply};

/// What is subscribed on a connection that is used for nothing else, and what its replies mean.
///
/// A new connection begins with a new one of these.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Subscriptions {
    channels: BTreeMap<Vec<u8>, Standing>,
    /// What was asked and not answered yet: the server answers in this order.
    asked: VecDeque<Asked>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
    Asked,
    Subscribed,
    /// The server does not allow it: it is not asked for again before it has been unwanted.
    Refused,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Asked {
    Subscribe(Vec<u8>),
    Unsubscribe,
}

/// What came over the connection.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Heard {
    /// Something was published on this channel.
    Message(Vec<u8>),
    /// This channel is subscribed from now on.
    Subscribed(Vec<u8>),
    /// This channel will not be.
    Refused(Vec<u8>),
    /// Nothing that matters.
    Nothing,
}

impl Subscriptions {
    /// What to send so that just these channels are subscribed.
    pub fn want(&mut self, wanted: &BTreeSet<Vec<u8>>) -> Vec<Command> {
        let mut commands = Vec::new();
        let asked = &mut self.asked;
        self.channels.retain(|channel, standing| {
            let stays = wanted.contains(channel);
            if !stays && *standing != Standing::Refused {
                asked.push_back(Asked::Unsubscribe);
                commands.push(command(b"UNSUBSCRIBE", channel));
            }
            stays
        });
        for channel in wanted {
            if !self.channels.contains_key(channel) {
                self.channels.insert(channel.clone(), Standing::Asked);
                self.asked.push_back(Asked::Subscribe(channel.clone()));
                commands.push(command(b"SUBSCRIBE", channel));
            }
        }
        commands
    }

    /// Takes in what came over the connection. After an error that connection is of no use.
    pub fn hear(&mut self, reply: Reply) -> Result<Heard, Error> {
        let parts = match reply {
            Reply::Array(parts) => parts,
            Reply::Error(text) => return self.refused(&text),
            other => return Err(unexpected(&other)),
        };
        match parts.as_slice() {
            [Reply::Text(kind), Reply::Text(channel), Reply::Text(_)] if kind == b"message" => {
                Ok(Heard::Message(channel.clone()))
            }
            [Reply::Text(kind), Reply::Text(channel), _] if kind == b"subscribe" => {
                self.answered(Some(channel))
            }
            [Reply::Text(kind), ..] if kind == b"unsubscribe" => self.answered(None),
            _ => Err(unexpected(&Reply::Array(parts))),
        }
    }

    /// Whether this channel is subscribed.
    pub fn has(&self, channel: &[u8]) -> bool {
        self.channels.get(channel) == Some(&Standing::Subscribed)
    }

    /// Whether nothing is subscribed or asked for.
    pub fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.channels.is_empty()
    }

    fn answered(&mut self, subscribed: Option<&Vec<u8>>) -> Result<Heard, Error> {
        match (self.asked.pop_front(), subscribed) {
            (Some(Asked::Subscribe(channel)), Some(named)) if channel == *named => {
                // It may have been given up meanwhile.
                Ok(match self.channels.get_mut(&channel) {
                    Some(standing) => {
                        *standing = Standing::Subscribed;
                        Heard::Subscribed(channel)
                    }
                    None => Heard::Nothing,
                })
            }
            (Some(Asked::Unsubscribe), None) => Ok(Heard::Nothing),
            (asked, _) => Err(Error::new(
                Code::Unavailable,
                format!("the server answered something else than {asked:?}"),
            )),
        }
    }

    fn refused(&mut self, text: &str) -> Result<Heard, Error> {
        match self.asked.pop_front() {
            Some(Asked::Subscribe(channel)) => Ok(match self.channels.get_mut(&channel) {
                Some(standing) => {
                    *standing = Standing::Refused;
                    Heard::Refused(channel)
                }
                None => Heard::Nothing,
            }),
            // What is subscribed and cannot be ended ends with the connection.
            Some(Asked::Unsubscribe) | None => Err(Error::from_reply(text)),
        }
    }
}

fn command(name: &'static [u8], channel: &[u8]) -> Command {
    vec![Cow::Borrowed(name), Cow::Owned(channel.to_vec())]
}

fn unexpected(reply: &Reply) -> Error {
    let what = format!("a subscription is not answered with {reply:?}");
    Error::new(Code::Unavailable, what)
}
