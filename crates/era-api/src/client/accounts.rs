//! Sessions, tokens, users, groups, wallets, audit, webhooks, secrets and images.

use super::path::{encode, query};
use super::{Client, ClientError};
use crate::account::{
    AuditLine, Grant, GroupView, LoggedIn, Login, Me, NewGroup, NewToken, NewUser, NewWebhook,
    PasswordChange, QuotaView, StatementFilter, StatementLineView, TokenInfo, TokenMade, UserEdit,
    UserFilter, UserMade, UserView, Wallet, Webhook, WebhookMade,
};
use crate::image::{BuildImage, Image, ImageNews, NewImage, PushImage};
use crate::page::{NameFilter, Page, PageAsk, every};
use crate::secret::{NewSecret, Secret};

impl Client {
    /// Logs in with a name and a password.
    pub fn log_in(&self, login: &Login) -> Result<LoggedIn, ClientError> {
        self.post("/sessions", login)
    }

    /// Who the token says we are.
    pub fn me(&self) -> Result<Me, ClientError> {
        self.get("/sessions")
    }

    /// Ends the session: the token is good no more.
    pub fn log_out(&self) -> Result<(), ClientError> {
        self.delete("/sessions")
    }

    /// Changes our own password.
    pub fn change_password(&self, change: &PasswordChange) -> Result<(), ClientError> {
        self.put("/password", change)
    }

    pub fn tokens(&self, page: &PageAsk) -> Result<Page<TokenInfo>, ClientError> {
        self.get(&format!("/tokens{}", query(page)))
    }

    pub fn make_token(&self, token: &NewToken) -> Result<TokenMade, ClientError> {
        self.post("/tokens", token)
    }

    /// Makes a token good for nothing.
    pub fn revoke_token(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&format!("/tokens/{}", encode(id)))
    }

    /// The accounts that a filter lets through.
    pub fn users(&self, filter: &UserFilter) -> Result<Page<UserView>, ClientError> {
        self.get(&format!("/users{}", query(filter)))
    }

    /// Makes an account.
    pub fn make_user(&self, user: &NewUser) -> Result<UserMade, ClientError> {
        self.post("/users", user)
    }

    pub fn user(&self, name: &str) -> Result<UserView, ClientError> {
        self.get(&format!("/users/{}", encode(name)))
    }

    /// Changes an account.
    pub fn edit_user(&self, name: &str, edit: &UserEdit) -> Result<UserMade, ClientError> {
        self.patch(&format!("/users/{}", encode(name)), edit)
    }

    /// Sets an account's limits.
    pub fn set_user_quota(&self, name: &str, quota: &QuotaView) -> Result<UserView, ClientError> {
        self.put(&format!("/users/{}/quota", encode(name)), quota)
    }

    /// Gives or takes credits.
    pub fn grant(&self, name: &str, grant: &Grant) -> Result<Wallet, ClientError> {
        self.post(&format!("/users/{}/grants", encode(name)), grant)
    }

    /// What an account has.
    pub fn wallet(&self, name: &str) -> Result<Wallet, ClientError> {
        self.get(&format!("/users/{}/wallet", encode(name)))
    }

    /// What came in and went out, newest first.
    pub fn statement(
        &self,
        name: &str,
        filter: &StatementFilter,
    ) -> Result<Page<StatementLineView>, ClientError> {
        self.get(&format!("/wallets/{}/statement{}", encode(name), query(filter)))
    }

    /// The groups that a filter lets through.
    pub fn groups(&self, filter: &NameFilter) -> Result<Page<GroupView>, ClientError> {
        self.get(&format!("/groups{}", query(filter)))
    }

    pub fn make_group(&self, group: &NewGroup) -> Result<GroupView, ClientError> {
        self.post("/groups", group)
    }

    pub fn group(&self, name: &str) -> Result<GroupView, ClientError> {
        self.get(&format!("/groups/{}", encode(name)))
    }

    /// Sets a group's limits.
    pub fn set_group_quota(&self, name: &str, quota: &QuotaView) -> Result<GroupView, ClientError> {
        self.put(&format!("/groups/{}/quota", encode(name)), quota)
    }

    /// Who changed what, newest first.
    pub fn audit(&self, page: &PageAsk) -> Result<Page<AuditLine>, ClientError> {
        self.get(&format!("/audit{}", query(page)))
    }

    pub fn webhooks(&self, page: &PageAsk) -> Result<Page<Webhook>, ClientError> {
        self.get(&format!("/webhooks{}", query(page)))
    }

    pub fn make_webhook(&self, webhook: &NewWebhook) -> Result<WebhookMade, ClientError> {
        self.post("/webhooks", webhook)
    }

    pub fn remove_webhook(&self, id: u64) -> Result<(), ClientError> {
        self.delete(&format!("/webhooks/{id}"))
    }

    /// Our secrets, without their values.
    pub fn secrets(&self) -> Result<Vec<Secret>, ClientError> {
        every(|page| self.get(&format!("/secrets{}", query(page))))
    }

    /// Sets a secret, or another value for it.
    pub fn set_secret(&self, name: &str, secret: &NewSecret) -> Result<Secret, ClientError> {
        self.put(&format!("/secrets/{}", encode(name)), secret)
    }

    pub fn remove_secret(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&format!("/secrets/{}", encode(name)))
    }

    /// The catalogue of images.
    pub fn images(&self, page: &PageAsk) -> Result<Page<Image>, ClientError> {
        self.get(&format!("/images{}", query(page)))
    }

    pub fn publish_image(&self, image: &NewImage) -> Result<Image, ClientError> {
        self.post("/images", image)
    }

    /// One image of the catalogue.
    pub fn image(&self, name: &str) -> Result<Image, ClientError> {
        self.get(&format!("/images/{}", encode(name)))
    }

    /// Builds an image; what the engine says comes line by line, until `news` says no.
    pub fn build_image(
        &self,
        build: &BuildImage,
        news: impl FnMut(ImageNews) -> bool,
    ) -> Result<(), ClientError> {
        self.post_for_lines("/images/build", build, news)
    }

    /// Sends an image to the registry, in the same way.
    pub fn push_image(
        &self,
        push: &PushImage,
        news: impl FnMut(ImageNews) -> bool,
    ) -> Result<(), ClientError> {
        self.post_for_lines("/images/push", push, news)
    }

    /// Takes an image out of the catalogue.
    pub fn remove_image(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&format!("/images/{}", encode(name)))
    }
}
