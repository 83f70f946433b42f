//! No size breaks the screen.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pgwake::app::{App, Msg, update};
use pgwake::config::keys::Key;
use pgwake::model::*;
use pgwake::ui::{Theme, draw};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::fixtures::*;

/// Every state, on every screen, with every dialog.
fn apps() -> &'static [App] {
    static APPS: OnceLock<Vec<App>> = OnceLock::new();
    APPS.get_or_init(|| {
        let mut all = Vec::new();
        for state in [
            empty(),
            calm(),
            busy(),
            stuck(),
            stale(),
            lost(),
            no_privilege(),
            hostile(),
            working(),
            connecting(),
        ] {
            for keys in [
                "",
                "2",
                "2\n",
                "2\n\n",
                "3",
                "4",
                "4\n",
                "4j\n",
                "5",
                "5\n",
                "6",
                "6j",
                "7",
                "3r",
                "3Gr",
                "3\n",
                "7\n",
                "R",
                "n",
                "w",
                "F",
                "?",
                "?jjjjjjjjjjjj",
                " ",
                "[",
                "{{[",
                "3/ma",
                "4sS",
                "6/x\n",
                "a",
                "ajjjjjjjjjjjjjjjjj",
                "a\njjjjjjjjjjjjjjjjjjjj",
                "aj\n",
            ] {
                let mut app = state.clone();
                for c in keys.chars() {
                    press(&mut app, if c == '\n' { Key::Enter } else { Key::Char(c) });
                }
                // what a look asked for arrives
                send(&mut app, END as f64, Event::Jobs(Box::new(jobs_of_mail(END))));
                all.push(app.clone());
                if keys == "2\n" {
                    press(&mut app, Key::Enter);
                    press(&mut app, Key::Char('v'));
                    send(&mut app, END as f64, Event::Job(Box::new(job_4700(END, true))));
                    all.push(app);
                }
            }
        }
        all
    })
}

fn render(app: &App, theme: &Theme, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut app = app.clone();
    update(&mut app, Msg::Resize(width, height), end());
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &app, end(), theme)).unwrap();
    terminal
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_size_panics(width in 0u16..500, height in 0u16..200, which in 0usize..300, ascii: bool) {
        let theme = Theme::load("dark").unwrap().with_ascii(ascii);
        render(&apps()[which % apps().len()], &theme, width, height);
    }

    #[test]
    fn no_small_size_panics(width in 0u16..70, height in 0u16..24, which in 0usize..300) {
        render(&apps()[which % apps().len()], &Theme::load("light").unwrap(), width, height);
    }

    #[test]
    fn in_ascii_every_cell_is_ascii(width in 60u16..200, height in 18u16..60, which in 0usize..300) {
        let theme = Theme::load("dark").unwrap().with_ascii(true);
        let terminal = render(&apps()[which % apps().len()], &theme, width, height);
        for cell in terminal.backend().buffer().content() {
            prop_assert!(cell.symbol().is_ascii(), "{:?}", cell.symbol());
        }
    }
}

#[test]
fn every_screen_and_dialog_is_whole_at_the_sizes_that_matter() {
    let theme = Theme::load("dark").unwrap();
    for app in apps() {
        for (width, height) in [(60, 18), (80, 24), (120, 36), (200, 60)] {
            let terminal = render(app, &theme, width, height);
            let last: String = (0..width)
                .map(|x| terminal.backend().buffer()[(x, height - 1)].symbol().to_owned())
                .collect();
            assert!(!last.trim().is_empty(), "the last line of {width}x{height} is empty");
        }
    }
}

#[test]
fn below_the_smallest_size_one_line_says_so() {
    let terminal = render(&calm(), &Theme::load("dark").unwrap(), 59, 18);
    let first: String = (0..59).map(|x| terminal.backend().buffer()[(x, 0)].symbol().to_owned()).collect();
    assert_eq!(first.trim(), "terminal too small (59x18, needs 60x18)");
}

/// The figure itself, one millisecond, is measured in a release build; this guards the order of
/// magnitude in any build: a frame that built all rows would take a hundred times as long.
#[test]
fn a_frame_builds_only_the_rows_that_are_seen() {
    let mut app = connected(setup());
    let mut s = flowing(END, 3.0, 3.0, 4);
    let leases = (0..10_000).map(|i| lease(END, i, &format!("worker-{}", i % 500), 5, 60)).collect();
    hold(&mut s, leases, &[]);
    send(&mut app, END as f64, Event::Sample(Box::new(s)));
    send(&mut app, END as f64, Event::Backlog(Box::new(some_backlog(END))));
    let theme = Theme::load("dark").unwrap();
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
    // every screen; leases also sorted and filtered, and from the past
    for keys in ["1", "2", "3", "4", "5", "6", "7", "3ss", "3/wo", "["] {
        let mut app = app.clone();
        for c in keys.chars() {
            press(&mut app, Key::Char(c));
        }
        let best = (0..20)
            .map(|_| {
                let begin = Instant::now();
                terminal.draw(|frame| draw(frame, &app, end(), &theme)).unwrap();
                begin.elapsed()
            })
            .min()
            .unwrap();
        println!("a frame of 200x60 over 10,000 leases, keys {keys}: {best:?}");
        assert!(best < Duration::from_millis(40), "{keys}: {best:?}");
    }
    // what a sample costs the side that draws, ordered and filtered lists and the history included
    for keys in ["3", "3ss", "3/wo"] {
        let mut app = app.clone();
        for c in keys.chars() {
            press(&mut app, Key::Char(c));
        }
        let mut s = app.sample().unwrap().clone();
        s.pass += 1;
        let begin = Instant::now();
        send(&mut app, END as f64 + 1.0, Event::Sample(Box::new(s)));
        println!("taking a sample of 10,000 leases, keys {keys}: {:?}", begin.elapsed());
    }
}
