//! The file routes over a real socket, with the real client.

use std::io::Read;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use era_api::account::{Role, Scope};
use era_api::client::transfer::{self, LocalFile, RemoteFile};
use era_api::client::{Client, ClientError};
use era_api::data::{
    DataSetEdit, FileFilter, FilesEdit, JobFolder, NewDataSet, NewTree, Visibility,
};
use era_api::file_service::{ClientMessage, FileChunk, ServerMessage, Source};
use era_api::page::PageAsk;
use era_app::clock::millis;
use era_app::files::directory::DirectoryAnswer;
use era_app::files::{FileOwners, Service};
use era_core::units::{GroupId, JobId, UserId};
use era_store::Store;
use era_store::files::{Files, KeepFor};

use crate::http::{Caller, Failure};

/// The token `3` is account 3, which is called `user3`; 1 and 2 are one group. Job 7 is 1's.
#[derive(Clone)]
struct TestState(Service);

struct Everybody;

impl FileOwners for Everybody {
    fn group_of(&self, user: UserId) -> Option<GroupId> {
        Some(GroupId(user.0.max(2)))
    }

    fn account_exists<'a>(&'a self, name: &'a str) -> DirectoryAnswer<'a, bool> {
        Box::pin(async move { Ok(name.starts_with("user")) })
    }

    fn storage_quota(&self, user: UserId) -> DirectoryAnswer<'_, Option<u64>> {
        Box::pin(async move { Ok((user.0 == 3).then_some(1000)) })
    }

    fn job_owner(&self, job: JobId) -> DirectoryAnswer<'_, Option<UserId>> {
        Box::pin(async move { Ok((job.0 == 7).then_some(UserId(1))) })
    }
}

impl FromRef<TestState> for Service {
    fn from_ref(state: &TestState) -> Service {
        state.0.clone()
    }
}

impl FromRequestParts<TestState> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &TestState) -> Result<Caller, Failure> {
        let token = parts.headers["authorization"].to_str().unwrap();
        let user: u32 = token.strip_prefix("Bearer ").unwrap().parse().unwrap();
        Ok(Caller {
            user: UserId(user),
            name: format!("user{user}"),
            group: GroupId(user.max(2)),
            role: Role::User,
            scopes: vec![Scope::Read, Scope::Write],
        })
    }
}

struct Server {
    folder: tempfile::TempDir,
    url: String,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let url = runtime.block_on(async {
            let store = Store::open(folder.path()).await.unwrap();
            let clock = crate::http::tests::clock();
            let files = Files::open(&store, KeepFor::default(), millis(clock)).unwrap();
            let state = TestState(Service::new(files, Arc::new(Everybody)));
            let (routes, _) = utoipa_axum::router::OpenApiRouter::new()
                .nest(era_api::PREFIX, super::routes::<TestState>())
                .split_for_parts();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let routes = routes.with_state(state);
            tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
            url
        });
        Server { folder, url, _runtime: runtime }
    }

    fn client(&self, user: u32) -> Client {
        Client::new(&self.url, Some(&user.to_string())).unwrap()
    }
}

fn code(outcome: Result<impl Sized, ClientError>) -> String {
    match outcome {
        Ok(_) => "no refusal".to_owned(),
        Err(error) => error.problem().map_or(error.to_string(), |problem| problem.code.clone()),
    }
}

/// Files in a folder, as they are sent.
fn locals(folder: &std::path::Path, files: &[(&str, Vec<u8>)]) -> Vec<LocalFile> {
    let make = |(path, content): &(&str, Vec<u8>)| {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        let bytes = content.len() as u64;
        LocalFile { file, path: (*path).to_owned(), bytes, executable: path.ends_with(".sh") }
    };
    files.iter().map(make).collect()
}

fn send(client: &Client, locals: &[LocalFile]) -> Result<NewTree, transfer::TransferError> {
    let entries = transfer::hash(locals, &|_| ())?;
    let lacking = client.lacking(&entries)?;
    let files: Vec<_> = lacking.iter().map(|&at| (&locals[at], &entries[at])).collect();
    client.send_files(&files, &|_| ())?;
    Ok(NewTree { files: entries })
}

#[test]
fn a_folder_goes_there_and_comes_back_the_same() {
    let server = Server::start();
    let client = server.client(1);
    let here = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..6_000_000_u32).map(|n| (n % 251) as u8).collect();
    let files = locals(
        here.path(),
        &[
            ("a.sh", b"x".to_vec()),
            ("b/ü %?#.txt", b"y".to_vec()),
            ("b/same", b"y".to_vec()),
            ("empty", vec![]),
            ("large", large),
        ],
    );
    let tree = send(&client, &files).unwrap();
    assert!(client.lacking(&tree.files).unwrap().is_empty());
    let made = client.put_tree(&tree).unwrap();
    assert_eq!(client.tree(&made.hash).unwrap().files.len(), 5);
    let wanted = NewDataSet { name: "d".to_owned(), visibility: Visibility::Private };
    client.make_data_set(&wanted).unwrap();
    assert_eq!(code(client.make_data_set(&wanted)), "name_taken");
    let put = FilesEdit { put: tree.files.clone(), ..FilesEdit::default() };
    let set = client.edit_data_set("user1", "d", &put).unwrap();
    assert_eq!((set.files, set.tree.as_deref()), (5, Some(made.hash.as_str())));
    let there = tempfile::tempdir().unwrap();
    // What an earlier try has left is gone on with.
    std::fs::write(
        there.path().join("large.era-part"),
        &std::fs::read(&files[4].file).unwrap()[..1_000_000],
    )
    .unwrap();
    let listed = client.data_files("user1", "d", &FileFilter::default()).unwrap();
    let remotes: Vec<_> =
        listed.items.iter().map(|file| RemoteFile::of_data("user1", "d", file)).collect();
    client.bring_files(&remotes, there.path(), &|_| ()).unwrap();
    for local in &files {
        let back = there.path().join(&local.path);
        assert_eq!(std::fs::read(&local.file).unwrap(), std::fs::read(back).unwrap());
    }
    // Not a stranger's: not the set, not the files, not by hash.
    let stranger = server.client(3);
    assert_eq!(code(stranger.data_set("user1", "d")), "unknown_data_set");
    assert_eq!(code(stranger.tree(&made.hash)), "unknown_tree");
    let blob = format!("/blobs/{}", tree.files[0].hash);
    assert_eq!(code(stranger.read_from(&blob, 0)), "unknown_blob");
    assert_eq!(stranger.lacking(&tree.files).unwrap().len(), 4);
    let share = DataSetEdit { shared_with: Some(vec!["nobody".to_owned()]), ..Default::default() };
    assert_eq!(code(client.share_data_set("user1", "d", &share)), "unknown_account");
    let share = DataSetEdit { shared_with: Some(vec!["user3".to_owned()]), ..Default::default() };
    client.share_data_set("user1", "d", &share).unwrap();
    stranger.read_from(&blob, 0).map(drop).unwrap();
    assert_eq!(code(stranger.remove_data_set("user1", "d")), "not_yours");
    client.remove_data_set("user1", "d").unwrap();
    assert_eq!(code(client.data_set("user1", "d")), "unknown_data_set");
}

#[test]
fn a_cut_upload_goes_on_and_a_wrong_one_is_refused() {
    let server = Server::start();
    let client = server.client(1);
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 241) as u8).collect();
    let hash = blake3::hash(&content).to_hex().to_string();
    // The connection breaks after half of what was announced.
    let half = content.len() / 2;
    let whole = content.len() as u64;
    client.put_blob(&hash, 0, whole, &mut &content[..half]).unwrap_err();
    let part = || match client.blob_state(&hash).unwrap() {
        era_api::client::files::UploadState::Part(have) => have,
        _ => 0,
    };
    let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
    while part() == 0 {
        pause();
    }
    // Until the server has noticed the break, the cut upload still holds the file.
    let beyond = loop {
        match code(client.put_blob(&hash, whole, 0, &mut std::io::empty())) {
            held if held == "upload_busy" => pause(),
            refused => break refused,
        }
    };
    assert_eq!(beyond, "wrong_offset");
    let have = part();
    assert!(0 < have && have <= half as u64);
    let rest = &content[have as usize..];
    client.put_blob(&hash, have, rest.len() as u64, &mut &*rest).unwrap();
    let (_, mut body) = client.read_from(&format!("/blobs/{hash}"), 2_999_990).unwrap();
    let mut read = Vec::new();
    body.read_to_end(&mut read).unwrap();
    assert_eq!(read, content[2_999_990..]);
    let other = blake3::hash(b"other").to_hex().to_string();
    assert_eq!(code(client.put_blob(&other, 0, 5, &mut &b"wrong"[..])), "hash_mismatch");
    assert_eq!(code(client.put_blob("../../x", 0, 5, &mut &b"wrong"[..])), "bad_hash");
    let large = [0; 1001];
    let limited = server.client(3);
    let hash = blake3::hash(&large).to_hex().to_string();
    assert_eq!(code(limited.put_blob(&hash, 0, 1001, &mut &large[..])), "storage_quota");
}

#[test]
fn outputs_and_checkpoints_are_listed_read_and_packed_for_those_who_may() {
    for kept in [JobFolder::Outputs, JobFolder::Checkpoints] {
        are_listed_read_and_packed(kept);
    }
}

fn are_listed_read_and_packed(kept: JobFolder) {
    let server = Server::start();
    let folder = server.folder.path().join("jobs/7").join(kept.as_str());
    std::fs::create_dir_all(folder.join("logs")).unwrap();
    std::fs::write(folder.join("model.bin"), b"0123456789").unwrap();
    std::fs::write(folder.join("logs/x"), b"log").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("leak")).unwrap();
    let client = server.client(1);
    let at = |path: &str| format!("/jobs/7/{kept}{path}");
    let page = client.kept(7, kept, &PageAsk { limit: Some(1), cursor: None }).unwrap();
    assert_eq!(page.items[0].path, "logs/x");
    let page = client.kept(7, kept, &PageAsk { limit: Some(5), cursor: page.next }).unwrap();
    assert_eq!((page.items[0].path.as_str(), page.items.len(), page.next), ("model.bin", 1, None));
    let (begins, mut body) = client.read_from(&at("/model.bin"), 4).unwrap();
    let mut text = String::new();
    body.read_to_string(&mut text).unwrap();
    assert_eq!((begins, text.as_str()), (4, "456789"));
    assert_eq!(code(client.read_from(&at("/leak"), 0)), "unknown_file");
    assert_eq!(code(client.read_from(&at("/%2e%2e/%2e%2e/era.db"), 0)), "bad_path");
    let (_, body) = client.read_from(&at("?archive=tar"), 0).unwrap();
    let mut archive = tar::Archive::new(body);
    let names: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().into_owned())
        .collect();
    assert_eq!(names, [std::path::Path::new("logs/x"), std::path::Path::new("model.bin")]);
    for stranger in [2, 3] {
        let outcome = server.client(stranger).kept(7, kept, &PageAsk::default());
        assert_eq!(code(outcome), "unknown_job");
    }
    assert_eq!(code(client.kept(8, kept, &PageAsk::default())), "unknown_job");
}

type Socket = tungstenite::WebSocket<tungstenite::stream::MaybeTlsStream<std::net::TcpStream>>;

fn connect(server: &Server, user: u32) -> Socket {
    use tungstenite::client::IntoClientRequest;
    let url = format!("{}{}/files/ws", server.url.replace("http", "ws"), era_api::PREFIX);
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {user}").parse().unwrap());
    tungstenite::connect(request).unwrap().0
}

fn say(socket: &mut Socket, say: &ClientMessage) {
    socket.send(tungstenite::Message::text(serde_json::to_string(say).unwrap())).unwrap();
}

/// The next answer that is about a transfer, with the pieces that came before it.
fn hear(socket: &mut Socket) -> (ServerMessage, Vec<u8>) {
    let mut content = Vec::new();
    loop {
        match socket.read().unwrap() {
            tungstenite::Message::Text(text) => match serde_json::from_str(&text).unwrap() {
                ServerMessage::Written { .. } => {}
                said => return (said, content),
            },
            tungstenite::Message::Binary(frame) => {
                content.extend_from_slice(FileChunk::read(&frame).unwrap().bytes);
            }
            _ => {}
        }
    }
}

#[test]
fn a_conversation_sends_goes_on_brings_back_and_lists() {
    let server = Server::start();
    let content: Vec<u8> = (0..2_500_000_u32).map(|n| (n % 239) as u8).collect();
    let hash = blake3::hash(&content).to_hex().to_string();
    let bytes = content.len() as u64;
    let upload = ClientMessage::Upload { id: 1, hash: hash.clone(), bytes };
    let piece = |at: u64, count: usize| {
        let part = &content[at as usize..][..count.min(content.len() - at as usize)];
        tungstenite::Message::binary(FileChunk { id: 1, offset: at, bytes: part }.frame())
    };
    let mut socket = connect(&server, 1);
    say(&mut socket, &upload);
    assert_eq!(hear(&mut socket).0, ServerMessage::Ready { id: 1, offset: 0 });
    socket.send(piece(0, 700_000)).unwrap();
    // Another transfer beside it, which is refused.
    say(
        &mut socket,
        &ClientMessage::Download { id: 2, from: Source::Blob(hash.clone()), offset: 0 },
    );
    let ServerMessage::Failed { id: Some(2), problem } = hear(&mut socket).0 else { panic!() };
    assert_eq!(problem.code, "unknown_blob");
    socket.close(None).unwrap();
    drop(socket);
    let mut socket = connect(&server, 1);
    let mut offset = loop {
        say(&mut socket, &upload);
        match hear(&mut socket).0 {
            ServerMessage::Ready { offset, .. } => break offset,
            // The server has not noticed yet that the first connection is gone.
            ServerMessage::Failed { problem, .. } => assert_eq!(problem.code, "upload_busy"),
            other => panic!("{other:?}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(offset, 700_000);
    while offset < bytes {
        socket.send(piece(offset, 1 << 20)).unwrap();
        offset += 1 << 20;
    }
    assert_eq!(hear(&mut socket).0, ServerMessage::Done { id: 1 });
    say(
        &mut socket,
        &ClientMessage::Download { id: 3, from: Source::Blob(hash.clone()), offset: 9 },
    );
    assert_eq!(hear(&mut socket).0, ServerMessage::Size { id: 3, bytes, hash: Some(hash.clone()) });
    let (done, back) = hear(&mut socket);
    assert_eq!((done, back == content[9..]), (ServerMessage::Done { id: 3 }, true));
    let client = server.client(1);
    client
        .make_data_set(&NewDataSet { name: "d".to_owned(), visibility: Visibility::Private })
        .unwrap();
    let entry = |path: &str| era_api::data::FileEntry {
        path: path.to_owned(),
        bytes,
        hash: hash.clone(),
        executable: false,
    };
    let put = vec![entry("a/1"), entry("b")];
    client.edit_data_set("user1", "d", &FilesEdit { put, ..FilesEdit::default() }).unwrap();
    let data = "user1/d".to_owned();
    let browse =
        ClientMessage::Browse { id: 4, data: data.clone(), folder: String::new(), after: None };
    say(&mut socket, &browse);
    let listing = |id, folders: &[&str], files| ServerMessage::Listing {
        id,
        folders: folders.iter().map(|&folder| folder.to_owned()).collect(),
        files,
        next: None,
    };
    assert_eq!(hear(&mut socket).0, listing(4, &["a"], vec![entry("b")]));
    say(&mut socket, &ClientMessage::Search { id: 5, data, text: "A/".to_owned(), after: None });
    assert_eq!(hear(&mut socket).0, listing(5, &[], vec![entry("a/1")]));
    socket.send(tungstenite::Message::text("{\"op\":\"dance\"}")).unwrap();
    let ServerMessage::Failed { id: None, problem } = hear(&mut socket).0 else { panic!() };
    assert_eq!(problem.code, "bad_message");
}
