//! One file per screen.

pub(super) mod events;
pub(super) mod leases;
pub(super) mod overview;
