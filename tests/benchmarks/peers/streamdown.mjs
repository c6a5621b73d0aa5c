// Deltas from a file of JSON; the CPU seconds of splitting the text into blocks at each of them.
import { readFileSync } from "node:fs";
import { parseMarkdownIntoBlocks } from "streamdown";

const deltas = JSON.parse(readFileSync(process.argv[2], "utf-8"));
let text = "";
let blocks = 0;
const start = process.cpuUsage();
for (const delta of deltas) {
  text += delta;
  blocks += parseMarkdownIntoBlocks(text).length;
}
const { user, system } = process.cpuUsage(start);
console.log(JSON.stringify({ seconds: (user + system) / 1e6, blocks }));
