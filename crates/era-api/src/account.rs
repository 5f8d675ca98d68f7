//! Accounts: who may do what, quotas, wallets, sessions and tokens, audit.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Credits;

/// What an account may do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Its own jobs, data and money.
    User,
    /// Also sees, cancels and retries the group's jobs and divides its quota.
    GroupAdministrator,
    Administrator,
}

/// What a token may be used for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Read,
    /// To submit and change jobs and data.
    Write,
    /// What administrators may.
    Admin,
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The account's name.
    pub user: String,
    pub password: String,
    /// What the token is for, as lists of tokens show it; a browser's session has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether a session cookie is wanted instead of a token.
    #[serde(default)]
    pub cookie: bool,
}

/// What a login gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LoggedIn {
    /// Who it is.
    pub me: Me,
    /// The token, told once; absent where a cookie was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What a browser sends back as `x-csrf-token` with every change; absent with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
    /// Until when it is good.
    pub expires: Timestamp,
}

/// Who is asking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Me {
    /// The account's number.
    pub id: u32,
    pub name: String,
    pub group: String,
    /// What it may do.
    pub role: Role,
    /// What it has.
    pub balance: Credits,
    /// Whether its password is the one-time one that must be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must_change_password: bool,
    /// What a browser sends back as `x-csrf-token` with every change; only for its own session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
}

/// A token as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TokenInfo {
    /// Its public name: the first letters of it.
    pub id: String,
    /// What it is for.
    pub label: String,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    pub created: Timestamp,
    pub expires: Timestamp,
    /// When it was last used, to the minute.
    pub used: Option<Timestamp>,
}

/// A token that is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it is for.
    pub label: String,
    /// What it may be used for; no more than the caller may.
    pub scopes: Vec<Scope>,
    /// How long it is good, in seconds; at most a year.
    pub valid_s: u64,
}

/// A token that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TokenMade {
    /// The token, told once.
    pub token: String,
    /// As lists show it.
    pub info: TokenInfo,
}

/// A change of one's own password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The present one.
    pub old: String,
    /// The new one: at least 10 characters.
    pub new: String,
}

/// An account that is wanted.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    pub name: String,
    /// Its group; made where it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What it may do.
    #[serde(default = "plain")]
    pub role: Role,
    /// How much it counts in policies.
    #[serde(default)]
    pub level: u8,
    /// Credits to begin with.
    #[serde(default)]
    pub credits: Credits,
    /// Its password; a one-time one is made where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

fn plain() -> Role {
    Role::User
}

/// An account that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UserMade {
    pub user: UserView,
    /// The one-time password, told once, where one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// Which accounts are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct UserFilter {
    /// Whose name has this in it.
    pub search: Option<String>,
    /// With this role.
    pub role: Option<Role>,
    /// Of this group.
    pub group: Option<String>,
    /// Whether they may log in and submit.
    pub enabled: Option<bool>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = User)]
pub struct UserView {
    pub id: u32,
    pub name: String,
    pub group: String,
    /// What it may do.
    pub role: Role,
    /// How much it counts in policies.
    pub level: u8,
    /// Whether it may log in and submit.
    pub enabled: bool,
    /// What it has.
    pub balance: Credits,
    pub quota: QuotaView,
    /// What is used of them.
    pub used: QuotaUse,
}

/// A change of an account; what is absent stays.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserEdit {
    pub group: Option<String>,
    /// What it may do.
    pub role: Option<Role>,
    /// How much it counts in policies.
    pub level: Option<u8>,
    /// Whether it may log in and submit.
    pub enabled: Option<bool>,
    /// A new one-time password is made, and all sessions end.
    pub reset_password: bool,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Group)]
pub struct GroupView {
    pub id: u32,
    pub name: String,
    /// How much it counts in policies.
    pub level: u8,
    pub quota: QuotaView,
    /// What is used of them.
    pub used: QuotaUse,
    /// How many accounts it has.
    pub users: u32,
}

/// A group that is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    pub name: String,
    /// How much it counts in policies.
    #[serde(default)]
    pub level: u8,
    #[serde(default)]
    pub quota: QuotaView,
}

/// Limits. What is absent is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = Quota)]
pub struct QuotaView {
    /// Cores at once, such as `16` or `500m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory at once, such as `64Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// GPUs at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Core-hours in a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_hours: Option<u64>,
    /// GiB-hours in a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_hours: Option<u64>,
    /// GPU-hours in a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<u64>,
    /// Credits spent in a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits: Option<Credits>,
    /// Bytes of data kept. Only the platform counts these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_bytes: Option<u64>,
}

/// What is used of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct QuotaUse {
    pub cpu: String,
    pub memory: String,
    pub gpu: String,
    /// Core-hours in this period.
    pub cpu_hours: f64,
    /// GiB-hours in this period.
    pub memory_hours: f64,
    /// GPU-hours in this period.
    pub gpu_hours: f64,
    /// Credits spent in this period.
    pub credits: Credits,
    /// Bytes of data kept.
    pub storage_bytes: u64,
    /// Since when hours and credits are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_from: Option<Timestamp>,
    /// When they are counted anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_to: Option<Timestamp>,
}

/// Credits given (or, below zero, taken).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    pub amount: Credits,
}

/// A wallet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Wallet {
    pub user: String,
    /// What it holds.
    pub balance: Credits,
    /// Set aside for promises and queue work that has not been settled.
    pub escrow: Credits,
    /// Spent in this period.
    pub spent: Credits,
    /// When this period began.
    pub period_from: Timestamp,
    /// When the next one begins.
    pub period_to: Timestamp,
    /// The budgets that bind it: its own and its group's, where they are set.
    #[serde(default)]
    pub budgets: Vec<Budget>,
}

/// The most that may be spent in a period, and what is left of it. It is the `credits` of a quota:
/// what would exceed it is refused, and queue work waits for the next period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Budget {
    /// Whether it is the account's own, or shared by its group.
    pub of: BudgetOf,
    /// The name of the account or the group.
    pub name: String,
    /// The most in a period.
    pub limit: Credits,
    /// Spent of it in this period.
    pub spent: Credits,
    /// What may still be spent.
    pub left: Credits,
}

/// Whose a budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetOf {
    /// One account's own.
    Account,
    /// A whole group's.
    Group,
}

/// What was spent and used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Spent {
    /// The project; absent for jobs that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub charged: Credits,
    pub refunded: Credits,
    /// Charged and not given back.
    pub net: Credits,
    /// Core-hours of tasks that are over.
    pub cpu_hours: f64,
    pub memory_hours: f64,
    pub gpu_hours: f64,
}

/// What an account spent, stretch by stretch and project by project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Spending {
    pub user: String,
    pub from: Timestamp,
    pub to: Timestamp,
    /// In stretches of so many seconds.
    pub step_s: u64,
    /// Stretches in which anything was spent or used, oldest first.
    pub stretches: Vec<SpendingStretch>,
}

/// What was spent in a stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SpendingStretch {
    pub from: Timestamp,
    pub projects: Vec<Spent>,
}

/// What the members of a group spent in a period, by project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Chargeback {
    pub group: String,
    pub from: Timestamp,
    pub to: Timestamp,
    /// Whoever spent most first.
    pub lines: Vec<ChargebackLine>,
}

/// What a member spent on a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChargebackLine {
    /// The account's name.
    pub user: String,
    /// What it spent.
    #[serde(flatten)]
    pub spent: Spent,
}

/// One line of a statement, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = StatementLine)]
pub struct StatementLineView {
    /// The journal's number of the input that it follows from.
    pub seq: u64,
    pub at: Timestamp,
    /// About which job.
    pub job: Option<u64>,
    /// Why, such as `charge` or `refund_unused`.
    pub reason: String,
    /// Above zero came in, below zero went out.
    pub amount: Credits,
    /// What the wallet held then.
    pub balance: Credits,
    /// Whether the job's tasks only slept, on simulated nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// Which lines of a statement are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct StatementFilter {
    /// For one of these reasons, by comma, such as `charge` or `refund_unused`.
    pub reason: Option<String>,
    /// About this job.
    pub job: Option<u64>,
    /// At or after.
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// Which lines of the audit trail are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct AuditFilter {
    /// By this account.
    pub who: Option<String>,
    /// Of what was done: all that begins so, such as `user` or `token.revoke`.
    pub what: Option<String>,
    /// To this, such as a node's or an account's name.
    pub target: Option<String>,
    /// At or after.
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// One line of the audit trail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AuditLine {
    pub id: u64,
    pub at: Timestamp,
    /// Who, by name.
    pub who: String,
    pub from: String,
    /// What, such as `user.create` or `login.failed`.
    pub what: String,
    pub target: String,
    /// Whether it was done.
    pub done: bool,
}

/// An address that is told when something happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Webhook {
    pub id: u64,
    /// Where it is told.
    pub url: String,
    pub events: Vec<WebhookEvent>,
    /// For `price_below`: in which pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// For `price_below`: a GPU-hour (a core-hour in a pool without GPUs) below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Credits>,
    /// What its last delivery came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

/// A webhook that is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Where it is told.
    pub url: String,
    pub events: Vec<WebhookEvent>,
    /// For `price_below`: in which pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// For `price_below`: the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Credits>,
}

/// A webhook that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WebhookMade {
    pub webhook: Webhook,
    /// The secret of its signatures, told once. `x-era-signature` is `v1=` and the HMAC-SHA-256,
    /// in hexadecimal, of `x-era-timestamp`, a dot and the body.
    pub secret: String,
}

/// What a webhook is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookEvent {
    /// A job runs.
    JobStarted,
    /// A job succeeded.
    JobFinished,
    /// A job failed.
    JobFailed,
    /// A promise was kept: it started when it was told.
    ReservationKept,
    /// A promise was broken.
    ReservationBroken,
    /// A price fell below a limit.
    PriceBelow,
}
