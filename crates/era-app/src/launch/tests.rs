//! The launcher behind a real driver on a real store, with an executor that only listens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use era_cloud::{Ending, Order};
use era_core::units::{JobId, Time};
use era_store::Note;
use serde_json::{Value, json};

use super::*;
use crate::feed::tests::Site;

const PATIENCE: Duration = Duration::from_secs(20);

/// An executor that carries nothing out.
#[derive(Default)]
struct Told(Mutex<Vec<Order>>);

impl Told {
    fn all(&self) -> MutexGuard<'_, Vec<Order>> {
        self.0.lock().unwrap()
    }

    fn launched(&self, job: u64) -> Option<era_cloud::Launch> {
        let launch = |order: &Order| match order {
            Order::Launch(launch) if launch.task.job == JobId(job) => Some(launch.clone()),
            _ => None,
        };
        self.all().iter().find_map(launch)
    }

    fn stopped(&self, job: u64) -> bool {
        let stop = |order: &Order| matches!(order, Order::Stop { task, .. } if task.job.0 == job);
        self.all().iter().any(stop)
    }
}

impl Executor for Told {
    fn carry_out(&self, order: Order) {
        self.all().push(order);
    }

    fn acknowledge(&self, _: TaskId) {}

    fn known(&self) -> Vec<TaskId> {
        Vec::new()
    }
}

/// A store of files that may be away.
#[derive(Default)]
struct Away {
    back: AtomicBool,
}

impl Staging for Away {
    fn stage<'a>(
        &'a self,
        _: UserId,
        _: &'a str,
        work: &'a Work,
        _: Option<&'a [Option<String>]>,
    ) -> Pin<Box<dyn Future<Output = Result<Material, Unstaged>> + Send + 'a>> {
        Box::pin(async move {
            if work.code.as_deref() == Some("missing") {
                return Err(Unstaged::ForGood("there is no such tree".to_owned()));
            }
            if !self.back.load(Ordering::Relaxed) {
                return Err(StoreError::Database(sqlx::Error::PoolTimedOut).into());
            }
            let file = Staged { from: "/kept/1".into(), to: "run.sh".into(), executable: false };
            Ok(Material { code: vec![file], ..Material::default() })
        })
    }
}

/// A site whose launcher is at work.
struct Bed {
    site: Site,
    launcher: Launcher,
    told: Arc<Told>,
    files: Arc<Away>,
    reports: mpsc::Sender<ExecutorReport>,
}

impl Bed {
    async fn start(folder: &std::path::Path) -> Bed {
        let mut site = Site::new(folder).await;
        let (told, files) = (Arc::new(Told::default()), Arc::new(Away::default()));
        let launching = Launching {
            driver: site.app.driver.clone(),
            clock: site.app.clock.clone(),
            rows: site.app.store.accounts(),
            journal: site.app.store.journal(),
            secrets: site.app.store.secrets(),
            engines: Engines { local: told.clone(), simulated: None },
            staging: files.clone(),
            folder: folder.to_owned(),
            limits: TaskLimits::default(),
            samples: None,
            gate: None,
            one_clock: true,
        };
        let (reports, reported) = mpsc::channel(16);
        let launcher = Launcher::start(launching, site.take_releases(), reported);
        Bed { site, launcher, told, files, reports }
    }

    /// A job that runs this.
    async fn submit(&self, work: Value) -> u64 {
        let ask = json!({"resources": {"cpu": "1"}, "duration_s": 60});
        let spec = serde_json::from_value(json!({"work": work, "ask": ask})).unwrap();
        let note = Note { user: Some("ada".to_owned()), spec, ..Note::default() };
        self.site.submit_of(1, 1, "1", note).await.0
    }

    async fn until<T>(&self, what: &str, found: impl Fn(&Bed) -> Option<T>) -> T {
        let begun = tokio::time::Instant::now();
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} did not come: {:?}", self.told.all());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn is_over(&self, job: u64) -> bool {
        self.site.app.driver.snapshot().job(JobId(job)).unwrap().ended.is_some()
    }

    async fn stop(self) {
        self.launcher.stop().await;
        self.site.stop().await;
    }
}

fn with_code(code: &str) -> Value {
    json!({"command": ["sh", "run.sh"], "code": code})
}

#[tokio::test]
async fn a_store_that_is_away_delays_a_job_and_neither_ends_it_nor_holds_up_another() {
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed::start(folder.path()).await;
    let waits = bed.submit(with_code("there")).await;
    let other = bed.submit(json!({"command": ["true"]})).await;
    bed.until("the other job", |bed| bed.told.launched(other)).await;
    // Long enough to be asked for several times.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(bed.told.launched(waits).is_none() && !bed.is_over(waits));
    bed.files.back.store(true, Ordering::Relaxed);
    let launch = bed.until("the job that waited", |bed| bed.told.launched(waits)).await;
    assert_eq!(launch.spec.code.len(), 1);
    // Both are out, until they are known to be over.
    let counted = || out(&bed.site.app.driver.snapshot());
    assert_eq!(counted(), 2);
    let (task, at) = (launch.task, Time(0));
    let ended = ExecutorReport::Exited { task, at, code: 0, ending: Ending::Itself };
    bed.reports.send(ended).await.unwrap();
    bed.until("its end", |_| (counted() == 1).then_some(())).await;
    bed.stop().await;
}

#[tokio::test]
async fn a_stop_overtakes_a_launch_that_waits_for_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed::start(folder.path()).await;
    let job = bed.submit(with_code("there")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    bed.site
        .done(json!({"type": "cancel", "job": job, "by": "administrator"}), Note::default())
        .await;
    bed.until("its stop", |bed| bed.told.stopped(job).then_some(())).await;
    bed.files.back.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(bed.told.launched(job), None, "it would run after its stop");
    bed.stop().await;
}

#[tokio::test]
async fn a_job_whose_code_is_gone_for_good_ends_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed::start(folder.path()).await;
    let job = bed.submit(with_code("missing")).await;
    bed.until("its end", |bed| bed.is_over(job).then_some(())).await;
    assert_eq!(bed.told.launched(job), None);
    bed.stop().await;
}

#[tokio::test]
async fn a_task_has_the_secrets_of_the_moment_of_its_launch_or_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed::start(folder.path()).await;
    let store = &bed.site.app.store;
    let sql = "INSERT INTO account_users (id, name, group_id, role, level, enabled, password, \
               one_time, created) VALUES (1, 'ada', 0, 0, 0, 1, '', 0, 0)";
    for sql in ["PRAGMA foreign_keys = OFF", sql] {
        sqlx::query(sql).execute(store.durable().writer()).await.unwrap();
    }
    let secrets = store.secrets();
    let set = async |value: &str| assert!(secrets.set(1, "A", value, 0, 64).await.unwrap());
    let values = |launch: &era_cloud::Launch| {
        let values = launch.spec.secrets.values();
        values.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    let work = json!({"command": ["true"], "secrets": ["A"]});
    for value in ["first", "next"] {
        set(value).await;
        let job = bed.submit(work.clone()).await;
        let launch = bed.until("its launch", |bed| bed.told.launched(job)).await;
        assert_eq!(values(&launch), [format!("A={value}")]);
        assert!(!format!("{launch:?}").contains(value));
    }
    secrets.remove(1, "A").await.unwrap();
    let job = bed.submit(work.clone()).await;
    bed.until("its end", |bed| bed.is_over(job).then_some(())).await;
    assert_eq!(bed.told.launched(job), None);
    let logs = JobId(job).folder(folder.path()).join("logs");
    let mut log = era_cloud::log::LogReader::open(&logs, Default::default()).unwrap();
    let told = log.read(10, 1 << 20, Time::MAX).unwrap();
    let told = String::from_utf8_lossy(&told[0].text).into_owned();
    assert!(told.contains("its secret `A` was removed"), "{told}");
    // A key that cannot be read is no doing of the job's: it waits.
    set("last").await;
    let key = folder.path().join("secrets.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::write(&key, "no key").unwrap();
    let job = bed.submit(work).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(bed.told.launched(job).is_none() && !bed.is_over(job));
    std::fs::write(&key, kept).unwrap();
    let launch = bed.until("its launch", |bed| bed.told.launched(job)).await;
    assert_eq!(values(&launch), ["A=last"]);
    bed.stop().await;
}

#[test]
fn only_a_store_that_does_not_answer_is_asked_again() {
    use era_store::files::ContentHash;
    let away = FilesError::from(sqlx::Error::PoolTimedOut);
    assert!(matches!(Unstaged::from(away), Unstaged::ForNow(_)));
    let gone = FilesError::UnknownTree(ContentHash::of(b"none"));
    assert!(matches!(Unstaged::from(gone), Unstaged::ForGood(_)));
    let what = "an entry".to_owned();
    let damaged = StoreError::Damaged { what, problem: "it is no JSON".to_owned() };
    assert!(matches!(Unstaged::from(damaged), Unstaged::ForGood(_)));
}
