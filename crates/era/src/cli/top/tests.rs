//! The screen as its reader sees it, drawn without a terminal.

use era_api::page::Page;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::cli::look;

fn picture() -> Picture {
    let node = crate::cli::nodes::tests::example();
    let mut running = crate::cli::job::tests::example().summary;
    running.state = era_api::job::JobState::Running;
    running.ended = None;
    let mut waiting = running.clone();
    waiting.id = 8;
    waiting.state = era_api::job::JobState::Waiting;
    waiting.started = None;
    let point = r#"{"from": "2026-11-15T13:00:00Z", "to": "2026-11-15T14:00:00Z", "cpu": "0.05",
        "memory": "0.01", "gpu": "2.5", "promised": [0, 0, 0.5], "forecast": [0, 0, 0]}"#;
    let market = format!(
        r#"{{"mechanism": {{"name": "basic-econ", "floor": 0.1, "ceiling": 10.0}},
        "pools": [{{"pool": "a", "now": {point}, "cheapest": {point}}}],
        "promises_due": 0, "promises_kept": 0}}"#
    );
    let utilisation = r#"{"now": 0.5, "cpu": 0.125, "memory": 0.0625, "gpu": 0.95}"#;
    Picture {
        nodes: vec![node],
        running: Page { items: vec![running], next: None },
        waiting: Page { items: vec![waiting; 30], next: Some("more".to_owned()) },
        market: serde_json::from_str(&market).unwrap(),
        utilisation: serde_json::from_str(utilisation).unwrap(),
    }
}

fn view() -> View {
    let mut view = View::new("http://127.0.0.1:7632", look::plain());
    view.take(Ok(picture()));
    view.look.now = look::plain().now;
    view
}

fn screen(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, view)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_screen_shows_nodes_jobs_and_prices() {
    insta::assert_snapshot!(screen(&view(), 100, 30));
}

#[test]
fn a_screen_of_any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (5, 3), (20, 8), (40, 12), (300, 100)] {
        let _ = screen(&view(), width, height);
    }
}

#[test]
fn trouble_is_shown_over_the_older_picture() {
    let mut view = view();
    view.take(Err("no server answers".to_owned()));
    let text = screen(&view, 100, 30);
    assert!(text.contains("no server answers") && text.contains("node-1"), "{text}");
}

#[test]
fn keys_move_within_the_list_and_never_past_its_ends() {
    let mut view = view();
    let press = |view: &mut View, code| pressed(view, KeyEvent::new(code, KeyModifiers::NONE));
    press(&mut view, KeyCode::BackTab);
    assert_eq!(view.list, view::List::Waiting);
    press(&mut view, KeyCode::PageDown);
    assert_eq!(view.first(view::List::Waiting), 10);
    for _ in 0..5 {
        press(&mut view, KeyCode::PageDown);
    }
    assert_eq!(view.first(view::List::Waiting), 29);
    press(&mut view, KeyCode::Home);
    assert_eq!(view.first(view::List::Waiting), 0);
    press(&mut view, KeyCode::Char('p'));
    assert!(view.paused);
    assert!(!press(&mut view, KeyCode::Char('q')));
}
