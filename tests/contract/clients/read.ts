// Uses a client that is generated from the description, in strict mode and without casts; compiled by the test.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

export function describeResult(result: Schemas["MatchResult"]): string {
  if (result.gameMode === "deathmatch") {
    const best = result.players[0];
    return `deathmatch on ${result.map}: ${best?.name} ${best?.kpm} kills per minute, won by ${result.winnerSteamId}`;
  }
  const mode: "competitive" | "wingman" | "casual" | "retakes" | "custom" = result.gameMode;
  const best = result.maps[0]?.players[0];
  return `${mode} ${result.format}: ${result.team1.seriesScore}:${result.team2.seriesScore}, ${best?.name} ${best?.kastPercent}`;
}

export function describeCallback(body: Schemas["CallbackBody"]): string {
  return body.eventType === "match_over" ? describeResult(body.result) : `canceled: ${body.reason}`;
}

export function describeItem(item: Schemas["TimelineItem"]): string {
  switch (item.type) {
    case "kill":
      return `${item.killer?.name} killed ${item.victim.name} with ${item.weapon}`;
    case "round_end":
      return `round ${item.roundNumber} ended ${item.score?.team1}:${item.score?.team2}`;
    default:
      return item.type;
  }
}

const labels = { event: "finals", table: "4" };
const settings: Schemas["GameSettings"] = { matchType: "wingman", map: "de_vertigo", seriesFormat: "bo3", labels };
export const body: Schemas["CreateMatch"] = { region: "any-region", gameType: "cs2", gameSettings: settings };

export async function read(baseUrl: string, externalMatchId: string, fetch: typeof globalThis.fetch): Promise<string> {
  const client = createClient<paths>({ baseUrl, fetch, headers: { Authorization: "Bearer key" } });
  const { data, error } = await client.GET("/api/v1/matches/{externalMatchId}", { params: { path: { externalMatchId } } });
  if (error !== undefined) return `${error.statusCode} ${error.error}`;
  return data.result === null ? "in progress" : describeResult(data.result);
}

export async function readFinals(baseUrl: string, fetch: typeof globalThis.fetch): Promise<string[]> {
  const client = createClient<paths>({ baseUrl, fetch, headers: { Authorization: "Bearer key" } });
  const listed = await client.GET("/api/v1/servers", { params: { query: { label: ["event:finals", "table:4"] } } });
  const lines: string[] = [];
  for (const { serverId, labels, simulated } of listed.data?.items ?? []) {
    const { data, error } = await client.GET("/api/v1/servers/{id}/result", { params: { path: { id: serverId } } });
    const text = error === undefined ? describeResult(data) : error.error;
    lines.push(`${labels?.["table"]}: ${text}${simulated ? ", simulated" : ""}`);
  }
  return lines;
}
