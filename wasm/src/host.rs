//! What JavaScript gives to a client: a transport, a clock, randomness, and the class of its errors.

use js_sys::Promise;
use tallylock_core::error::{Error, Reason};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::slots::Number;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What the runtime gives to a client. */
export interface Host {
  /** Milliseconds on a monotonic clock. */
  now(): number;
  /** Fills the bytes from a cryptographic source of randomness. */
  random(bytes: Uint8Array): void;
  /** A promise, to be settled by its number; to settle it again is nothing. */
  promise(number: number): Promise<unknown>;
  resolve(number: number, value: unknown): void;
  reject(number: number, error: unknown): void;
  /** Calls `client.woke(timer)` at this moment of `now()`, in a later turn. */
  setTimer(timer: number, at: number): void;
  /** Forgets a timer. */
  clearTimer(timer: number): void;
  /** Calls `client.due(lease)` at this moment of `now()`, in a later turn, instead of when it was to be called before. */
  watch(lease: number, at: number): void;
  /** Forgets when to call for a lease; and the lease itself, if it is gone. */
  unwatch(lease: number, isGone: boolean): void;
  /** Connects to the server of this number, and answers with `client.answered(call, nothing)` or `client.undelivered(call, ...)`. */
  open(call: number, node: number): void;
  /**
   * Sends that many commands to that server in one write, and answers with `client.answered` or `client.undelivered`. The
   * commands are in RESP, in memory that is another's as soon as this returns.
   */
  send(call: number, node: number, operation: number, commands: number, resp: Uint8Array): void;
  /** Nobody waits for a call of this operation to that server any more. */
  forget(node: number, operation: number): void;
  /**
   * Opens a connection for subscriptions, if the transport knows how; tells `client.listens()` once it is there, `client.heard()`
   * what comes over it, and `client.deaf()` when it is lost or cannot be had: each in a later turn or microtask.
   */
  listen(): boolean;
  /** Sends that many commands over it, as `send` gets them. */
  subscribe(commands: number, resp: Uint8Array): void;
  /** Ends it, if there is one. */
  hush(): void;
  /** Makes the error that callers see. */
  failure(code: string, reason: string | undefined, key: string | undefined, applied: string, message: string): unknown;
}
"#;

#[wasm_bindgen]
extern "C" {
    /// What the runtime gives to a client.
    #[wasm_bindgen(typescript_type = "Host")]
    pub type Host;

    #[wasm_bindgen(method)]
    pub(crate) fn now(this: &Host) -> f64;

    #[wasm_bindgen(method)]
    pub(crate) fn random(this: &Host, bytes: &mut [u8]);

    #[wasm_bindgen(method)]
    pub(crate) fn promise(this: &Host, number: Number) -> Promise;

    #[wasm_bindgen(method)]
    pub(crate) fn resolve(this: &Host, number: Number, value: &JsValue);

    #[wasm_bindgen(method)]
    pub(crate) fn reject(this: &Host, number: Number, error: &JsValue);

    #[wasm_bindgen(method, js_name = setTimer)]
    pub(crate) fn set_timer(this: &Host, timer: Number, at: f64);

    #[wasm_bindgen(method, js_name = clearTimer)]
    pub(crate) fn clear_timer(this: &Host, timer: Number);

    #[wasm_bindgen(method)]
    pub(crate) fn watch(this: &Host, lease: Number, at: f64);

    #[wasm_bindgen(method)]
    pub(crate) fn unwatch(this: &Host, lease: Number, is_gone: bool);

    #[wasm_bindgen(method)]
    pub(crate) fn open(this: &Host, call: Number, node: u16);

    #[wasm_bindgen(method)]
    pub(crate) fn send(
        this: &Host,
        call: Number,
        node: u16,
        operation: u32,
        commands: u32,
        resp: &[u8],
    );

    #[wasm_bindgen(method)]
    pub(crate) fn forget(this: &Host, node: u16, operation: u32);

    #[wasm_bindgen(method)]
    pub(crate) fn listen(this: &Host) -> bool;

    #[wasm_bindgen(method)]
    pub(crate) fn subscribe(this: &Host, commands: usize, resp: &[u8]);

    #[wasm_bindgen(method)]
    pub(crate) fn hush(this: &Host);

    #[wasm_bindgen(method, js_name = failure)]
    fn make_failure(
        this: &Host,
        code: &str,
        reason: Option<&str>,
        key: Option<&str>,
        applied: &str,
        message: &str,
    ) -> JsValue;
}

impl Host {
    /// The JavaScript error for an error of core.
    pub(crate) fn failure(&self, error: &Error) -> JsValue {
        let reason = error.code().reason().map(Reason::as_str);
        self.make_failure(
            error.code().as_str(),
            reason,
            error.key(),
            error.applied().as_str(),
            &error.to_string(),
        )
    }
}
