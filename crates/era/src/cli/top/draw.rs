//! How `era top` looks: a function of the view, for a screen of any size.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Gauge, Paragraph, Row, Table};

use era_api::job::{JobState, JobSummary};
use era_api::page::Page;

use super::view::{List, Picture, View};
use crate::cli::jobs::{needs, start};
use crate::cli::look::money::Money;
use crate::cli::look::span;
use crate::cli::nodes::gpu_cells;

pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(3), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    let Some(picture) = &view.picture else {
        frame.render_widget(Paragraph::new("asking …"), body);
        return;
    };
    gauges(frame, head, view, picture);
    let count = u16::try_from(picture.nodes.len()).unwrap_or(u16::MAX);
    // As many lines as there are nodes, but never more than a third of the screen.
    let for_nodes = count.saturating_add(3).min(body.height / 3).max(4);
    let [prices, nodes, running, waiting] = Layout::vertical([
        Constraint::Length(u16::try_from(picture.market.pools.len().min(4)).unwrap_or(4) + 2),
        Constraint::Length(for_nodes),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ])
    .areas(body);
    draw_prices(frame, prices, view, picture);
    draw_nodes(frame, nodes, view, picture);
    draw_jobs(frame, running, view, List::Running, &picture.running);
    draw_jobs(frame, waiting, view, List::Waiting, &picture.waiting);
    frame.render_widget(footer(view), foot);
}

fn coloured(view: &View, color: Color) -> Style {
    if view.look.paint.is_on() { Style::new().fg(color) } else { Style::new() }
}

fn frame_of(view: &View, title: String, list: Option<List>) -> Block<'static> {
    let chosen = list == Some(view.list);
    let style = if chosen { coloured(view, Color::Cyan) } else { Style::new() };
    let mark = if chosen { "▸ " } else { "" };
    Block::new().borders(Borders::TOP).border_style(style).title(format!(" {mark}{title} "))
}

fn gauges(frame: &mut Frame<'_>, area: Rect, view: &View, picture: &Picture) {
    let used = &picture.utilisation;
    let shares = [("all", used.now), ("cpu", used.cpu), ("memory", used.memory), ("gpu", used.gpu)];
    let areas = Layout::horizontal([Constraint::Fill(1); 4]).areas::<4>(area);
    for ((name, share), area) in shares.into_iter().zip(areas) {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let color = if share > 0.9 { Color::Red } else { Color::Green };
        let gauge = Gauge::default()
            .block(Block::bordered().title(format!(" {name} ")))
            .gauge_style(coloured(view, color))
            .ratio(share);
        frame.render_widget(gauge, area);
    }
}

fn table(
    headings: Vec<&'static str>,
    widths: Vec<Constraint>,
    rows: Vec<Row<'static>>,
) -> Table<'static> {
    let head = Row::new(headings).style(Style::new().add_modifier(Modifier::BOLD));
    Table::new(rows, widths).header(head).column_spacing(2)
}

fn draw_prices(frame: &mut Frame<'_>, area: Rect, view: &View, picture: &Picture) {
    let title = format!("prices, by {}", picture.market.mechanism.name);
    let rows = picture.market.pools.iter().map(|pool| {
        Row::new(vec![
            pool.pool.clone(),
            pool.now.gpu.to_string(),
            pool.now.cpu.to_string(),
            pool.now.memory.to_string(),
            format!("{} at {}", pool.cheapest.gpu, view.look.time(pool.cheapest.from)),
        ])
    });
    let headings = vec!["POOL", "GPU-HOUR", "CORE-HOUR", "GIB-HOUR", "CHEAPEST GPU-HOUR"];
    let widths = vec![
        Constraint::Max(16),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Fill(1),
    ];
    let table = table(headings, widths, rows.collect());
    frame.render_widget(table.block(frame_of(view, title, None)), area);
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, view: &View, picture: &Picture) {
    let title = format!("nodes ({})", picture.nodes.len());
    let of = |amounts: &std::collections::BTreeMap<String, String>, name: &str| {
        amounts.get(name).cloned().unwrap_or_else(|| "0".to_owned())
    };
    let rows = picture.nodes.iter().skip(view.first(List::Nodes)).map(|node| {
        let color = match node.health.as_str() {
            "up" => Color::Green,
            "cordoned" | "draining" => Color::Yellow,
            _ => Color::Red,
        };
        let share =
            |name: &str| format!("{}/{}", of(&node.allocated, name), of(&node.capacity, name));
        let mut name = node.name.clone();
        if node.simulated {
            name += " (simulated)";
        }
        Row::new(vec![
            Cell::from(name),
            Cell::from(node.pool.clone()),
            Cell::from(Span::styled(node.health.clone(), coloured(view, color))),
            Cell::from(share("cpu")),
            Cell::from(share("memory")),
            Cell::from(gpu_cells(node)),
            Cell::from(node.jobs.len().to_string()),
        ])
    });
    let headings = vec!["NODE", "POOL", "HEALTH", "CPU", "MEMORY", "GPUS", "JOBS"];
    let widths = vec![
        Constraint::Fill(2),
        Constraint::Max(12),
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(14),
        Constraint::Fill(1),
        Constraint::Length(5),
    ];
    let table = table(headings, widths, rows.collect());
    frame.render_widget(table.block(frame_of(view, title, Some(List::Nodes))), area);
}

fn draw_jobs(frame: &mut Frame<'_>, area: Rect, view: &View, list: List, jobs: &Page<JobSummary>) {
    let what = if list == List::Waiting { "waiting" } else { "running" };
    let more = if jobs.next.is_some() { "the newest " } else { "" };
    let title = format!("{what} ({more}{})", jobs.items.len());
    let money = Money::of(jobs.items.iter().map(|job| job.price));
    let rows = jobs.items.iter().skip(view.first(list)).map(|job| {
        let color = match job.state {
            JobState::Running => Color::Green,
            JobState::Promised | JobState::Starting => Color::Blue,
            _ => Color::Yellow,
        };
        let start = start(job, &view.look);
        Row::new(vec![
            Cell::from(job.id.to_string()),
            Cell::from(job.name.clone().unwrap_or_default()),
            Cell::from(job.user.clone()),
            Cell::from(Span::styled(job.state.as_str(), coloured(view, color))),
            Cell::from(needs(job)),
            Cell::from(start),
            Cell::from(span(job.duration_s)),
            Cell::from(money.show(job.price)),
        ])
    });
    let headings = vec!["JOB", "NAME", "USER", "STATE", "NEEDS", "START", "TIME", "PRICE"];
    let widths = vec![
        Constraint::Length(8),
        Constraint::Fill(1),
        Constraint::Max(12),
        Constraint::Length(9),
        Constraint::Fill(2),
        Constraint::Length(16),
        Constraint::Length(9),
        Constraint::Length(10),
    ];
    let table = table(headings, widths, rows.collect());
    frame.render_widget(table.block(frame_of(view, title, Some(list))), area);
}

fn footer(view: &View) -> Line<'static> {
    let keys = "q quit  Tab next list  ↑↓ move  p pause  r again";
    match &view.trouble {
        Some(trouble) => Line::styled(format!("{trouble} "), coloured(view, Color::Red)),
        None => {
            let state = if view.paused { "paused" } else { "live" };
            let time = view.look.now.strftime("%H:%M:%S").to_string();
            Line::from(format!("{} {state} {time}  {keys}", view.url))
        }
    }
}
