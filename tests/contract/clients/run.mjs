// Prints what the compiled client reads from a file: JSON with the status and body of each response.
import { readFileSync } from "node:fs";
import { read } from "./read.js";

for (const { status, body } of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  const answer = async () => new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  console.log(await read("http://service.example", "cup-17", answer));
}
