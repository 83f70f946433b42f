//! Parts that several screens are made of.

pub(super) mod alerts;
pub(super) mod backlog;
pub(super) mod chart;
pub(super) mod details;
pub(super) mod dialog;
pub(super) mod flow;
pub(super) mod grid;
pub(super) mod holders;
pub(super) mod lease;
pub(super) mod listening;
pub(super) mod on_job;
pub(super) mod palette;
pub(super) mod plan;
pub(super) mod reading;
pub(super) mod release;
pub(super) mod session;
pub(super) mod spark;
pub(super) mod vitals;
