/**
 * Kills every command that writes files, at random moments and at the moment when it begins to write:
 * `KILLS=200 node scripts/kill-test.mjs [--cli dist/src/cli/main.js] [--seed 1]`. What is found at the
 * name of a file must be what was there before, or the whole new file; beside it at most a temporary
 * file that its name tells. Every process that a command has started must end. Exits with 1 otherwise.
 */
import { spawn } from 'node:child_process';
import {
  mkdtempSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    cli: { type: 'string', default: join(root, 'dist/src/cli/main.js') },
    seed: { type: 'string', default: '1' },
  },
});
const kills = Number(process.env.KILLS ?? 50);

/** What is at the name of a file before a command writes it, in half of the runs. */
const before = 'what was there before\n';

/** How long after its command a process may still be there. */
const graceMilliseconds = 3_000;

const endsWith = (mark) => (content) => content.toString().trimEnd().endsWith(mark);

function isSafetensors(content) {
  const length = Number(content.readBigUInt64LE(0));
  const tensors = JSON.parse(content.subarray(8, 8 + length).toString());
  delete tensors.__metadata__;
  const ends = Object.values(tensors).map(({ data_offsets: [, end] }) => end);
  return content.length === 8 + length + Math.max(...ends);
}

/** By the ending of a name: whether a file is whole. */
const isWhole = {
  json: (content) => typeof JSON.parse(content.toString()) === 'object',
  safetensors: isSafetensors,
  xml: endsWith('</testsuites>'),
  svg: endsWith('</svg>'),
  html: endsWith('</html>'),
};

/** A problem of so many queries and keys in two heads of dimension 64, bf16. */
function writeProblem(path, length) {
  const size = 2 * length * 64 * 2;
  const entry = (index) => ({
    dtype: 'BF16',
    shape: [1, 2, length, 64],
    data_offsets: [index * size, (index + 1) * size],
  });
  const header = Buffer.from(JSON.stringify({ q: entry(0), k: entry(1), v: entry(2) }));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(header.length));
  const data = Buffer.alloc(3 * size);
  // Numbers from −2 to 2, of many different bits.
  for (let at = 0; at < data.length; at += 2)
    data.writeUInt16LE((((at * 40_503) >>> 7) & 0x807f) | 0x3f00, at);
  writeFileSync(path, Buffer.concat([prefix, header, data]));
}

const kernel = `"${process.execPath}" "${join(root, 'test/cli/check-protocol-kernel.mjs')}" one-percent`;

/** The commands that write, the files that they write, and the folder for more of their own. */
const commands = [
  ['audit {problem} --kernel fa4 --threads 1 --json {json} --junit {xml}', ['json', 'xml']],
  ['audit {problem} --kernel fa4 --html {html}', ['html'], '--html'],
  ['emulate fa4 {large} --save {safetensors} --json {json}', ['safetensors', 'json']],
  ['emulate fa4 {problem} --machine --no-races --clusters 1 --trace {json}', ['json']],
  ['bound {problem} --json {json}', ['json']],
  [
    'check --kernel fa4 --variant causal-one-more --property within-bound --runs 3 --seed 1 --json {json} --junit {xml}',
    ['json', 'xml'],
  ],
  [
    'check --exec {kernel} --formats bf16 --runs 3 --seed 1 --property within-bound --json {json}',
    ['json'],
  ],
  ['profile rsqrt --from 1 --to 1.01 --json {json} --svg {svg}', ['json', 'svg']],
  ['conform ex2.approx.ftz.f32 --json {json}', ['json']],
];

function createRandom(seed) {
  let state = Math.imul(seed, 0x9e3779b1) || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** The processes that have the mark in their environment, the command itself and its kernel's alike. */
function marked(mark) {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const isZombie = readFileSync(`/proc/${name}/stat`, 'utf8').includes(') Z ');
      return (
        !isZombie && readFileSync(`/proc/${name}/environ`, 'utf8').includes(`KILL_TEST=${mark}`)
      );
    } catch {
      // It has ended meanwhile, or is somebody else's.
      return false;
    }
  });
}

/** What is wrong with a file that a command wrote; empty for nothing. */
function tornFault(folder, name, kind) {
  const content = readFileSync(join(folder, name));
  try {
    return isWhole[kind](content) ? [] : [`${name} is torn`];
  } catch (error) {
    return [`${name} is torn (${error.message}): ${content.length} bytes`];
  }
}

const temporaryName = /^\.flashproof-[0-9a-f]{16}\.tmp$/;

/** What is left of a run. */
async function faultsOf(folder, targets, hadBefore, mark) {
  const faults = [];
  let temporary = 0;
  const isOld = (name) => hadBefore && readFileSync(join(folder, name)).toString() === before;
  for (const name of readdirSync(folder)) {
    const kind = targets.find((target) => name === `out.${target}`);
    if (temporaryName.test(name)) temporary++;
    else if (kind !== undefined) {
      if (!isOld(name)) faults.push(...tornFault(folder, name, kind));
    } else if (name === 'failures') {
      const failures = join(folder, name);
      for (const saved of readdirSync(failures))
        if (temporaryName.test(saved)) temporary++;
        else faults.push(...tornFault(failures, saved, 'safetensors'));
    } else faults.push(`${name} is left behind`);
  }
  const end = performance.now() + graceMilliseconds;
  while (marked(mark).length > 0 && performance.now() < end) await sleep(50);
  for (const pid of marked(mark)) faults.push(`process ${pid} is left behind`);
  return { faults, temporary };
}

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-kill-'));
const files = {
  problem: join(scratch, 'problem.safetensors'),
  large: join(scratch, 'large.safetensors'),
};
writeProblem(files.problem, 64);
writeProblem(files.large, 512);

/** Runs a command; `killAfter` ms, or when it begins to write, it is killed. Null lets it end. */
async function run([line, targets], folder, mark, killAfter, atWriting) {
  const places = Object.fromEntries(targets.map((kind) => [kind, join(folder, `out.${kind}`)]));
  const words = line
    .split(' ')
    .map((word) => word.replace(/\{(\w+)\}/, (_, name) => ({ ...files, ...places, kernel })[name]));
  if (words[0] === 'check') words.push('--save-dir', join(folder, 'failures'));
  const start = performance.now();
  const child = spawn(process.execPath, [values.cli, ...words], {
    env: { ...process.env, KILL_TEST: mark },
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => child.once('exit', (...how) => resolve(how)));
  const kill = () => child.kill('SIGKILL');
  let timer = killAfter === null || atWriting ? undefined : setTimeout(kill, killAfter);
  const watcher = watch(folder, () => {
    if (atWriting) timer ??= setTimeout(kill, killAfter);
  });
  const how = await ended;
  watcher.close();
  clearTimeout(timer);
  return { how, milliseconds: performance.now() - start };
}

const random = createRandom(Number(values.seed));
const totals = { killed: 0, temporary: 0, torn: 0 };

function freshFolder(hadBefore, targets) {
  const folder = join(scratch, 'run');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  if (hadBefore) for (const kind of targets) writeFileSync(join(folder, `out.${kind}`), before);
  return folder;
}

/** Runs a command once to its end, for how long that takes; null where the command line has it not. */
async function measured(command) {
  const [line, targets, option] = command;
  const folder = freshFolder(false, targets);
  const { how, milliseconds } = await run(command, folder, `${process.pid}-whole`, null, false);
  const { faults } = await faultsOf(folder, targets, false, `${process.pid}-whole`);
  const written = readdirSync(folder).filter((name) => name.startsWith('out.'));
  if (how[0] <= 1 && written.length === targets.length && faults.length === 0) return milliseconds;
  if (option !== undefined) return null;
  throw new Error(`flashproof ${line}: ${how}, wrote ${written}; ${faults}`);
}

try {
  const times = new Map();
  for (let count = 0; count < kills; count++) {
    const command = commands[count % commands.length];
    if (!times.has(command)) times.set(command, await measured(command));
    const whole = times.get(command);
    if (whole === null) continue;
    const [line, targets] = command;
    const hadBefore = random() < 0.5;
    const atWriting = random() < 0.6;
    const killAfter = atWriting ? random() ** 2 * 8 : (0.2 + 0.8 * random()) * whole;
    const folder = freshFolder(hadBefore, targets);
    const mark = `${process.pid}-${count}`;
    const { how } = await run(command, folder, mark, killAfter, atWriting);
    if (how[1] === 'SIGKILL') totals.killed++;
    const left = await faultsOf(folder, targets, hadBefore, mark);
    totals.temporary += left.temporary;
    totals.torn += left.faults.length;
    for (const fault of left.faults) console.log(`FINDING: flashproof ${line}: ${fault}`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(
  `${kills} runs, ${totals.killed} killed, ${totals.torn} faults, ${totals.temporary} temporary files left by their name`,
);
if (totals.torn > 0) process.exitCode = 1;
