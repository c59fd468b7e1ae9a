/**
 * Reads hostile files with every reader of the toolkit: `node scripts/fuzz.mjs --files 100000 --seed 1`.
 * Anything but a RequestError of one line, a hang, and an array larger than the file accounts for is a
 * finding; so is a process that dies. `--only <n>` makes input n again and says what comes of it. The
 * inputs are read in a child with a small heap (`--heap <MiB>`), which is started anew behind an input
 * on which it hangs or dies. `--target <name>` is one reader alone, as in `--target safetensors`. Exits with 1 when there are findings.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'vite';

const { values, positionals } = parseArgs({
  options: {
    files: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    from: { type: 'string', default: '0' },
    heap: { type: 'string', default: '48' },
    target: { type: 'string' },
    child: { type: 'string' },
  },
  allowPositionals: true,
});
const [files, seed, begin] = [values.files, values.seed, values.from].map(Number);
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Silence of a child after which it hangs; what is merely slow is found by the campaign itself. */
const hangMilliseconds = 30_000;

/** Where the campaign is compiled to: below node_modules, so that it finds the packages. */
const compiled = join(root, 'node_modules', `.flashproof-fuzz-${process.pid}`);

/** Compiles the campaign from its TypeScript sources; vite comes with vitest. */
async function compileCampaign() {
  await build({
    root,
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: 'test/hardening/fuzz-campaign.ts',
      outDir: compiled,
      target: 'node20',
      rollupOptions: { output: { entryFileNames: 'campaign.mjs' } },
    },
  });
  return join(compiled, 'campaign.mjs');
}

/** The child: reports every outcome, and its resident memory. */
async function serve(folder, campaignFile) {
  const { fuzz, targetsNamed } = await import(pathToFileURL(campaignFile).href);
  const targets = targetsNamed(values.target);
  const baseline = process.resourceUsage().maxRSS;
  await fuzz({ seed, from: begin, to: files, folder, targets }, (outcome, index) => {
    process.send({ index, outcome, baseline, resident: process.resourceUsage().maxRSS });
  });
  process.disconnect();
}

/** Runs one child from an input on; the input at which it ended, and why it ended early. */
function runChild(folder, campaignFile, from, onMessage) {
  return new Promise((resolve) => {
    const options = [
      '--files',
      files,
      '--seed',
      seed,
      '--from',
      from,
      '--heap',
      values.heap,
      ...(values.target === undefined ? [] : ['--target', values.target]),
      '--child',
      folder,
      campaignFile,
    ];
    const child = fork(fileURLToPath(import.meta.url), options.map(String), {
      execArgv: [`--max-old-space-size=${values.heap}`],
    });
    let next = from;
    let why = null;
    let timer;
    const expect = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        why = 'hangs';
        child.kill('SIGKILL');
      }, hangMilliseconds);
    };
    expect();
    child.on('message', (message) => {
      next = message.index + 1;
      expect();
      onMessage(message);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve([next, why ?? (code === 0 ? null : `the process ended by ${signal ?? code}`)]);
    });
  });
}

const megabytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

async function campaign(campaignFile) {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-fuzz-'));
  const start = performance.now();
  const targets = new Map();
  const findings = [];
  let [allocated, slowest, baseline, resident] = [0, 0, 0, 0];
  const onMessage = ({ index, outcome, ...memory }) => {
    const counts = targets.get(outcome.target) ?? { read: 0, refused: 0 };
    counts[outcome.isRefused ? 'refused' : 'read']++;
    targets.set(outcome.target, counts);
    if (outcome.finding !== null) {
      findings.push(outcome.finding);
      console.log(`FINDING ${index} (${outcome.target}): ${outcome.finding.what}`);
    }
    allocated = Math.max(allocated, outcome.allocated);
    slowest = Math.max(slowest, outcome.milliseconds);
    baseline = Math.max(baseline, memory.baseline * 1024);
    resident = Math.max(resident, memory.resident * 1024);
    if ((index + 1) % 10_000 === 0)
      console.log(
        `${index + 1} files, ${findings.length} findings, resident ${megabytes(resident)}`,
      );
  };
  try {
    for (let from = begin; from < files;) {
      const [next, why] = await runChild(folder, campaignFile, from, onMessage);
      if (why !== null) {
        findings.push({ index: next, what: why });
        console.log(`FINDING ${next}: ${why}`);
      }
      from = why === null ? files : next + 1;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  for (const [name, { read, refused }] of targets)
    console.log(`${name}: ${read} read, ${refused} refused`);
  console.log(
    `${files - begin} files, ${findings.length} findings, ${((performance.now() - start) / 1000).toFixed(1)} s; ` +
      `largest array ${megabytes(allocated)}, slowest file ${slowest.toFixed(0)} ms, resident ` +
      `${megabytes(resident)} (${megabytes(baseline)} before the first file), heap limit ${values.heap} MiB`,
  );
  if (findings.length > 0) process.exitCode = 1;
}

async function replay(index, campaignFile) {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-fuzz-'));
  const { fuzz, targetsNamed } = await import(pathToFileURL(campaignFile).href);
  const targets = targetsNamed(values.target);
  await fuzz({ seed, from: index, to: index + 1, folder, targets }, (outcome) => {
    console.log(JSON.stringify(outcome, null, 2));
    if (outcome.finding !== null) process.exitCode = 1;
  });
  console.log(`the input is in ${folder}`);
}

if (values.child !== undefined) await serve(values.child, positionals[0]);
else
  try {
    const campaignFile = await compileCampaign();
    if (values.only !== undefined) await replay(Number(values.only), campaignFile);
    else await campaign(campaignFile);
  } finally {
    rmSync(compiled, { recursive: true, force: true });
  }
