// The benchmark routes as a typical Node service: Express 5, a key looked up by its hash, SQLite, and the live view of a
// match as an object in memory that is encoded and compressed for each request.
//
// As durable as ours: WAL, and a commit is on disk before the response. With BENCH_ROWS=one a creation writes one row
// without encryption. With BENCH_ROWS=all it writes in a transaction what is needed to list series and maps and to stream
// events, with indexes, and encrypts the secrets. Nothing acts on the new row, and there are no idempotency keys and
// counts. If no SQLite module can be loaded, it keeps the rows in memory and prints that.

import { createCipheriv, createHash, randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import compression from "compression";
import express from "express";

const KEY_HASHES = new Map([[sha256(process.env.BENCH_KEY), { org: "org_bench", scopes: ["servers:read", "servers:write"] }]]);
const REGIONS = new Set([process.env.BENCH_REGION]);
const MATCH_TYPES = new Set(["competitive", "casual", "deathmatch", "wingman", "retakes", "custom"]);
const SERIES_TYPES = new Set(["competitive", "wingman"]);
const FORMATS = new Set(["bo1", "bo3", "bo5"]);
const BODY_FIELDS = new Set(["region", "gameType", "callbackUrl", "callbackAuthToken", "externalMatchId", "gameSettings"]);
const SETTINGS_FIELDS = new Set([
  "matchType", "map", "maps", "seriesFormat", "teams", "players", "serverPassword", "dmSubMode", "dmRoundMinutes",
  "freezeTime", "maxRounds", "customCvars",
]);
const MAP = /^([a-z0-9_]{1,64}|workshop\/[0-9]+)$/;
const PLAYER = /^7656119[0-9]{10}$/;
const TEAM_NAME = /^[^";\\%${}`\p{C}]{1,32}$/u;
const COLUMNS = [
  "id", "game_id", "org_id", "region", "status", "ip", "port", "callback_url", "callback_auth", "external_match_id",
  "game_type", "settings", "rcon_password", "log_token", "report_token", "created_at_ms",
];

function sha256(text) {
  return createHash("sha256").update(text).digest("hex");
}

async function openDatabase(path) {
  for (const load of [async () => (await import("better-sqlite3")).default, async () => (await import("node:sqlite")).DatabaseSync]) {
    try {
      const Database = await load();
      return { database: new Database(path), name: Database.name };
    } catch {
      // Try the next one.
    }
  }
  return null;
}

const LIVE_FIELDS = ["phase", "match", "deadline", "round", "sides", "roster", "lastHeardAt", "connect"];
const SECRETS = ["callback_auth", "rcon_password", "log_token", "report_token"];
const VAULT_KEY = randomBytes(32);
const WRITES_ALL = process.env.BENCH_ROWS === "all";
const TABLES = [
  "CREATE INDEX servers_newest ON servers (org_id, created_at_ms DESC, id)",
  "CREATE INDEX servers_by_status ON servers (org_id, status, created_at_ms DESC, id)",
  "CREATE INDEX servers_by_external_id ON servers (external_match_id, org_id)",
  "CREATE UNIQUE INDEX servers_by_log_token ON servers (log_token)",
  "CREATE TABLE series (id TEXT PRIMARY KEY, server_id, org_id, format, team1_name, team2_name, status, created_at_ms)",
  "CREATE INDEX series_newest ON series (org_id, created_at_ms DESC, id)",
  "CREATE INDEX series_of_server ON series (server_id)",
  "CREATE TABLE maps (id TEXT PRIMARY KEY, series_id, server_id, org_id, map_number, map_name, team1_name, team2_name, status, created_at_ms)",
  "CREATE INDEX maps_newest ON maps (org_id, created_at_ms DESC, id)",
  "CREATE INDEX maps_by_name ON maps (org_id, map_name, created_at_ms DESC, id)",
  "CREATE INDEX maps_of_server ON maps (server_id, map_number)",
  "CREATE TABLE events (seq INTEGER PRIMARY KEY, org_id, at_ms, line)",
];

function seal(secret) {
  if (secret == null) return null;
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", VAULT_KEY, nonce);
  return Buffer.concat([nonce, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
}

function insertAll(database, insert) {
  for (const statement of TABLES) database.exec(statement);
  const addSeries = database.prepare("INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  const addMap = database.prepare("INSERT INTO maps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const addEvent = database.prepare("INSERT INTO events VALUES (NULL, ?, ?, ?)");
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  return (row, settings) => {
    const { id, org_id: org, created_at_ms: at } = row;
    const names = ["team1", "team2"].map((team) => settings.teams?.[team]?.name ?? "Team");
    const seriesId = randomUUID();
    const sealed = { ...row };
    for (const name of SECRETS) sealed[name] = seal(row[name]);
    begin.run();
    insert.run(...COLUMNS.map((column) => sealed[column]));
    addSeries.run(seriesId, id, org, settings.seriesFormat ?? "bo1", ...names, "upcoming", at);
    [settings.map, ...(settings.maps ?? [])].forEach((map, number) => addMap.run(randomUUID(), seriesId, id, org, number + 1, map, ...names, "upcoming", at));
    addEvent.run(org, at, JSON.stringify({ type: "match_created", serverId: id, externalMatchId: row.external_match_id, region: row.region }));
    commit.run();
  };
}

async function openServers(folder) {
  const opened = await openDatabase(join(folder, "express.sqlite3"));
  if (opened === null) {
    const rows = new Map();
    return { kind: "a map in memory", find: (id) => rows.get(id), add: (row) => rows.set(row.id, row) };
  }
  const { database, name } = opened;
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database.exec(`CREATE TABLE servers (${COLUMNS.map((column) => (column === "id" ? "id TEXT PRIMARY KEY" : column)).join(", ")})`);
  const select = database.prepare(`SELECT ${COLUMNS.join(", ")} FROM servers WHERE id = ?`);
  const insert = database.prepare(`INSERT INTO servers VALUES (${COLUMNS.map(() => "?").join(", ")})`);
  return {
    kind: name === "DatabaseSync" ? "node:sqlite" : "better-sqlite3",
    find: (id) => select.get(id),
    add: WRITES_ALL ? insertAll(database, insert) : (row) => insert.run(...COLUMNS.map((column) => row[column])),
  };
}

function faultsOf(body) {
  const faults = [];
  const check = (isValid, path, message) => {
    if (!isValid) faults.push({ path, message });
  };
  if (typeof body !== "object" || body === null) return [{ path: "", message: "must be an object" }];
  for (const name of Object.keys(body)) check(BODY_FIELDS.has(name), name, "is not a known field");
  check(REGIONS.has(body.region), "region", "must be a known region");
  check(body.gameType === "cs2", "gameType", "must be cs2");
  const { callbackUrl, callbackAuthToken, externalMatchId, gameSettings: settings } = body;
  check(callbackUrl == null || (URL.canParse(callbackUrl) && /^https?:/.test(callbackUrl)), "callbackUrl", "must be an http or https URL");
  check(callbackAuthToken == null || /^[\x20-\x7e]{1,4096}$/.test(callbackAuthToken), "callbackAuthToken", "must be valid in a header");
  check(externalMatchId == null || /^[^\p{Cc}]{1,255}$/u.test(externalMatchId), "externalMatchId", "must be 1 to 255 characters");
  if (typeof settings !== "object" || settings === null) {
    faults.push({ path: "gameSettings", message: "must be an object" });
    return faults;
  }
  settingsFaults(settings, (isValid, name, message) => check(isValid, `gameSettings.${name}`, message));
  return faults;
}

function settingsFaults(settings, check) {
  for (const name of Object.keys(settings)) check(SETTINGS_FIELDS.has(name), name, "is not a known field");
  const isSeries = SERIES_TYPES.has(settings.matchType);
  const isDeathmatch = settings.matchType === "deathmatch";
  check(MATCH_TYPES.has(settings.matchType), "matchType", "must be a known match type");
  check(MAP.test(settings.map), "map", "must be the name of a map");
  check(settings.maps == null || (Array.isArray(settings.maps) && settings.maps.every((map) => MAP.test(map))), "maps", "must be names of maps");
  check(settings.seriesFormat == null || (isSeries && FORMATS.has(settings.seriesFormat)), "seriesFormat", "must be bo1, bo3 or bo5");
  check(settings.players == null || isDeathmatch, "players", "is for deathmatch only");
  check(settings.dmSubMode == null || isDeathmatch, "dmSubMode", "is for deathmatch only");
  check(settings.dmRoundMinutes == null || isDeathmatch, "dmRoundMinutes", "is for deathmatch only");
  check(isWithin(settings.freezeTime, 0, 60), "freezeTime", "must be from 0 to 60");
  check(isWithin(settings.maxRounds, 1, 200), "maxRounds", "must be from 1 to 200");
  check(settings.serverPassword == null || /^[^";\p{C}]{1,32}$/u.test(settings.serverPassword), "serverPassword", "must be 1 to 32 characters");
  if (settings.teams == null) return;
  check(isSeries, "teams", "is for competitive and wingman only");
  const seen = new Set();
  for (const team of ["team1", "team2"]) {
    const { name = "Team", players = [] } = settings.teams[team] ?? {};
    check(TEAM_NAME.test(name), `teams.${team}.name`, "must be 1 to 32 allowed characters");
    for (const player of players) {
      check(PLAYER.test(player), `teams.${team}.players`, "must be 64-bit player IDs");
      check(!seen.has(player), `teams.${team}.players`, "lists a player twice");
      seen.add(player);
    }
  }
  check(seen.size <= 32, "teams", "lists more than 32 players");
}

function isWithin(value, min, max) {
  return value == null || (Number.isInteger(value) && value >= min && value <= max);
}

function rowOf(body, org) {
  return {
    id: `srv_${randomBytes(12).toString("hex")}`,
    game_id: randomUUID(),
    org_id: org,
    region: body.region,
    status: "allocating",
    ip: null,
    port: null,
    callback_url: body.callbackUrl ?? null,
    callback_auth: body.callbackAuthToken ?? null,
    external_match_id: body.externalMatchId ?? null,
    game_type: body.gameType,
    settings: JSON.stringify(body.gameSettings),
    rcon_password: randomBytes(18).toString("base64url"),
    log_token: randomBytes(24).toString("base64url"),
    report_token: randomBytes(24).toString("base64url"),
    created_at_ms: Date.now(),
  };
}

function viewOf(row) {
  return {
    serverId: row.id,
    gameId: row.game_id,
    region: row.region,
    status: row.status,
    ip: row.ip,
    port: row.port,
    callbackUrl: row.callback_url,
    externalMatchId: row.external_match_id,
    gameType: row.game_type,
    createdAt: new Date(row.created_at_ms).toISOString(),
    rconPassword: row.rcon_password,
  };
}

function sendError(response, statusCode, error, message, details) {
  response.status(statusCode).json({ statusCode, error, message, details });
}

function requireScope(scope) {
  return (request, response, next) => {
    const [, key] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "") ?? [];
    const principal = key && KEY_HASHES.get(sha256(key));
    if (!principal) return sendError(response, 401, "UNAUTHORIZED", "The API key is missing or invalid.");
    if (!principal.scopes.includes(scope)) return sendError(response, 403, "FORBIDDEN", `The key lacks ${scope}.`);
    request.principal = principal;
    next();
  };
}

const recorded = JSON.parse(readFileSync(process.env.BENCH_LIVE, "utf8"));
const live = Object.fromEntries(LIVE_FIELDS.map((name) => [name, recorded[name]]));
const servers = await openServers(process.env.BENCH_FOLDER);
const app = express();
const compress = compression();
// Only for clients that ask for it: the middleware costs something for the others too.
app.use((request, response, next) => (request.headers["accept-encoding"] ? compress(request, response, next) : next()));
// Matchpod sends neither header.
app.disable("x-powered-by");
app.disable("etag");

app.get("/api/v1/servers/:id", requireScope("servers:read"), (request, response) => {
  const row = servers.find(request.params.id);
  if (!row) return sendError(response, 404, "NOT_FOUND", "There is no such server.");
  if (row.org_id !== request.principal.org) return sendError(response, 403, "FORBIDDEN", "The server belongs to another organization.");
  response.json({ ...viewOf(row), ...live });
});

app.post("/api/v1/matches", requireScope("servers:write"), express.json({ limit: 262_144 }), (request, response) => {
  const faults = faultsOf(request.body);
  if (faults.length) return sendError(response, 400, "INVALID_PARAMS", "The body is invalid.", faults);
  const row = rowOf(request.body, request.principal.org);
  servers.add(row, request.body.gameSettings);
  response.status(201).json(viewOf(row));
});

const listening = app.listen(0, "127.0.0.1", () => {
  console.log(`node ${process.version}, ${servers.kind}`);
  console.log(`listening on http://127.0.0.1:${listening.address().port}`);
});
