// The reference's published tools as a subject: in process and warm, answering JSON lines like the others.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as pi from "@earendil-works/pi-coding-agent";

const makers = {
  read: pi.createReadTool,
  write: pi.createWriteTool,
  edit: pi.createEditTool,
  ls: pi.createLsTool,
  find: pi.createFindTool,
  grep: pi.createGrepTool,
  bash: pi.createBashTool,
};
const made = new Map();

function tool(name, cwd) {
  const key = `${name} ${cwd}`;
  if (!made.has(key)) made.set(key, makers[name](cwd));
  return made.get(key);
}

function status(key) {
  const line = readFileSync("/proc/self/status", "utf8").split("\n").find((text) => text.startsWith(key));
  return Number(line.split(/\s+/)[1]) * 1024;
}

function resetPeak() {
  try {
    writeFileSync("/proc/self/clear_refs", "5");
    return status("VmRSS");
  } catch {
    return 0;
  }
}

async function cancelled([name, args], cwd, after) {
  const controller = new AbortController();
  const running = tool(name, cwd).execute("call", args, controller.signal).catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, after * 1000));
  const begun = performance.now();
  controller.abort();
  await running;
  return (performance.now() - begun) / 1000;
}

async function round(workload, number) {
  if (number === 0) {
    for (const [name, text] of Object.entries(workload.files ?? {})) writeFileSync(join(workload.cwd, name), text);
  }
  const calls = workload.rounds[number % workload.rounds.length];
  if (workload.cancel_after !== null) return cancelled(calls[0], workload.cwd, workload.cancel_after);
  const one = ([name, args]) => tool(name, workload.cwd).execute("call", args);
  const begun = performance.now();
  for (let i = 0; i < workload.repeat; i++) {
    if (workload.parallel) await Promise.all(calls.map(one));
    else for (const call of calls) await one(call);
  }
  return (performance.now() - begun) / 1000 / workload.repeat / workload.per;
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    const before = resetPeak();
    const seconds = await round(request.workload, request.round);
    answer = { seconds, added_bytes: before ? Math.max(0, status("VmHWM") - before) : null };
  } catch (error) {
    answer = { error: String(error).slice(0, 300) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
