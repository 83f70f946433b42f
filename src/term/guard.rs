//! Entering the terminal, and leaving it exactly once whatever happens.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use tokio::sync::Notify;

/// Whether the screen is ours at this moment. The one who turns it off restores the terminal.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Whether the mouse was taken with it.
static MOUSE: AtomicBool = AtomicBool::new(false);

/// Whether a panic has happened on any thread since [`watch_panics`].
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Wakes the loop after a panic; the hook notifies, [`panicked`] waits.
static PANIC: Notify = Notify::const_new();

/// Held while a frame is written, so that nobody restores the terminal in the middle of one.
static WRITING: Mutex<()> = Mutex::new(());

/// The hook is installed once a process: hooks cannot be taken out of a chain again.
static HOOK: Once = Once::new();

/// Why there is no screen.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// Input or output is a pipe or a file.
    #[error("{0} is not a terminal")]
    NotATerminal(&'static str),
    /// `TERM=dumb` cannot place a cursor.
    #[error("TERM=dumb cannot show a screen")]
    Dumb,
    /// The terminal refused.
    #[error("the terminal: {0}")]
    Io(#[from] io::Error),
}

/// The terminal while it is ours. Dropping it gives the terminal back.
pub struct Guard {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Guard {
    /// Whether a screen is possible here at all; says why not.
    pub fn check() -> Result<(), TerminalError> {
        if !io::stdin().is_terminal() {
            return Err(TerminalError::NotATerminal("standard input"));
        }
        if !io::stdout().is_terminal() {
            return Err(TerminalError::NotATerminal("standard output"));
        }
        if std::env::var_os("TERM").is_some_and(|t| t == "dumb") {
            return Err(TerminalError::Dumb);
        }
        Ok(())
    }

    /// Takes the terminal; [`watch_panics`] comes first. Raw mode, the alternate screen, bracketed paste, no cursor.
    pub fn enter() -> Result<Self, TerminalError> {
        Self::check()?;
        enable_raw_mode()?;
        // from here on everything that fails has something to give back
        ENTERED.store(true, Ordering::SeqCst);
        let entered = (|| {
            execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)?;
            // a frame is one write, not a line at a time
            Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(64 * 1024, io::stdout())))
        })();
        match entered {
            Ok(terminal) => Ok(Self { terminal }),
            Err(e) => {
                leave();
                Err(e.into())
            }
        }
    }

    /// Takes the mouse as well. Without this no terminal reports it, and text can be selected.
    pub fn take_mouse(&mut self) -> io::Result<()> {
        MOUSE.store(true, Ordering::SeqCst);
        execute!(io::stdout(), EnableMouseCapture)
    }

    /// Gives the terminal back for a while: to the shell, which goes on with it as it was.
    pub fn give_back(&mut self) {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        leave();
    }

    /// Takes the terminal again, whatever its state has become meanwhile, and draws everything anew.
    pub fn take_again(&mut self) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if PANICKED.load(Ordering::SeqCst) {
            return Ok(());
        }
        // a shell may have set modes of its own behind our back: out first, so that in is really in
        disable_raw_mode()?;
        enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let mut out = io::stdout();
        execute!(out, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        if MOUSE.load(Ordering::SeqCst) {
            execute!(out, EnableMouseCapture)?;
        }
        self.forget()
    }

    /// Everything is drawn with the next frame, whatever the terminal shows now.
    pub fn redraw(&mut self) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.forget()
    }

    /// Forgets what the terminal shows. Not `Terminal::clear`, which asks the terminal where its cursor is
    /// and waits for the answer among the keys.
    fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Puts a text on the clipboard on the side of the terminal (OSC 52), which works over SSH.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }

    /// Writes what an [`Alarm`](super::Alarm) made, between two frames.
    pub fn ring(&mut self, bytes: &str) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        let out = self.terminal.backend_mut();
        out.write_all(bytes.as_bytes())?;
        io::Write::flush(out)
    }

    /// Draws one frame, as one synchronised update where the terminal knows that.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(render)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// The size in cells.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back, the first time it is called after it was taken.
fn leave() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    // what cannot be restored because the terminal is gone needs no restoring
    let mut out = io::stdout();
    if MOUSE.load(Ordering::SeqCst) {
        let _ = execute!(out, DisableMouseCapture);
    }
    let _ = execute!(out, EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
    let _ = out.flush();
}

/// Any panic, on any thread: first the terminal, then the report, and the loop is told to end. A live
/// screen over a restored terminal would be worse than none.
fn on_panic(info: &PanicHookInfo<'_>, report: &dyn Fn(&PanicHookInfo<'_>)) {
    PANICKED.store(true, Ordering::SeqCst);
    if ENTERED.load(Ordering::SeqCst) {
        // A frame in the middle ends first, but a panic within that frame must not wait for itself.
        let until = Instant::now() + Duration::from_millis(100);
        let _writing = loop {
            match WRITING.try_lock() {
                Ok(lock) => break Some(lock),
                Err(TryLockError::Poisoned(lock)) => break Some(lock.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => break None,
            }
        };
        leave();
    }
    report(info);
    PANIC.notify_one();
}

/// From now on a panic on any thread gives the terminal back first and ends [`panicked`]. Called again
/// it does nothing more; whoever starts threads calls it before.
pub fn watch_panics() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| on_panic(info, &*before)));
    });
}

/// Ends when a panic has happened on any thread since [`watch_panics`].
pub async fn panicked() {
    while !PANICKED.load(Ordering::SeqCst) {
        PANIC.notified().await;
    }
}

/// Whether the terminal behind standard input is still there. Without this a closed terminal that
/// sends no SIGHUP would leave the program running for nobody.
pub fn is_alive() -> bool {
    rustix::termios::tcgetattr(io::stdin()).is_ok()
}
