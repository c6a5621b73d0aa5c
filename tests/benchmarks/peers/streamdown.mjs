// Deltas as JSON come in; the CPU seconds of splitting the text into blocks at each of them go out.
import { readFileSync } from "node:fs";
import { parseMarkdownIntoBlocks } from "streamdown";

const deltas = JSON.parse(readFileSync(0, "utf-8"));
let text = "";
let blocks = 0;
const start = process.cpuUsage();
for (const delta of deltas) {
  text += delta;
  blocks += parseMarkdownIntoBlocks(text).length;
}
const { user, system } = process.cpuUsage(start);
console.log(JSON.stringify({ seconds: (user + system) / 1e6, blocks }));
