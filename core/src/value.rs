//! Values: texts of any bytes that are written together with their TTL, and only where they are still there or by the
//! holder of a lock who was not overtaken.

mod compare_and_set;
mod get;
mod guarded_delete;
mod guarded_set;
mod replace_if_present;
mod touch;
mod update;

pub use compare_and_set::CompareAndSet;
pub use get::Get;
pub use guarded_delete::GuardedDelete;
pub use guarded_set::GuardedSet;
pub use replace_if_present::ReplaceIfPresent;
pub use touch::Touch;
pub use update::{Offer, Offered, Update};

pub(crate) use {
    compare_and_set::compare_and_set_twin, get::read_twin, guarded_delete::guarded_delete_twin,
    guarded_set::guarded_set_twin, replace_if_present::replace_if_present_twin, touch::touch_twin,
};
