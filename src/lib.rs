//! pgwake: a terminal dashboard for work queues kept in PostgreSQL tables.
//!
//! **The table is the ledger; a notification is only a wake-up.** Correctness comes from rows, leases
//! and tokens; NOTIFY buys latency, nothing else.
//!
//! # How data flows
//!
//! ```text
//! PostgreSQL ─ NOTIFY / rows ─▶ pg::listen, monitor::sampler, worker
//!    (text cleaned here, once)      │  Event (bounded feed; samples: latest wins)
//!                                   ▼
//! terminal keys ─▶ term::input ─▶ app::update ─▶ App ─▶ ui::draw ─▶ terminal
//!                                   │  Intent
//!                                   ▼
//!                      monitor::operator / worker ─▶ PostgreSQL ─▶ Event
//! ```
//!
//! The loop that draws never waits for the network, and a terminal that blocks never stops a socket
//! from being read: they run on different threads.
//!
//! # The rooms, by floor
//!
//! A room uses only rooms on floors below it; rooms on one floor do not know each other
//! (`tests/layers.rs` holds this).
//!
//! | floor | rooms |
//! |---|---|
//! | 7 | [`command`] |
//! | 6 | [`demo`], [`drill`] (which may use `demo`) |
//! | 5 | [`ui`], [`term`], [`report`] |
//! | 4 | [`app`] (pure), [`monitor`], [`worker`] |
//! | 3 | [`ledger`] |
//! | 2 | [`pg`] |
//! | 1 | [`profile`], [`config`], [`record`] |
//! | 0 | [`model`], [`text`] |

pub mod app;
pub mod cli;
pub mod command;
pub mod config;
pub mod demo;
pub mod drill;
pub mod ledger;
pub mod model;
pub mod monitor;
pub mod pg;
pub mod profile;
pub mod record;
pub mod report;
pub mod term;
pub mod text;
pub mod ui;
pub mod worker;
