/**
 * Tries a random sample of mutants of the code that judges on the default suite, each in a copy of the repository, on all
 * cores: `npm run mutation:sample`, which installs what makes the mutants. What all tests let live goes to the compiler, which
 * refuses some, and then to the long tests of its area. Environment: MUTATION_SEED, MUTATION_MINUTES, MUTATION_WORKERS, and
 * MUTATION_FILES, a regular expression of paths. Writes reports/mutation/sample-<seed>.txt and .json.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const {
  MUTATION_SEED = '1',
  MUTATION_MINUTES = '60',
  MUTATION_WORKERS = String(availableParallelism()),
  MUTATION_FILES = '',
} = process.env;
const seed = Number(MUTATION_SEED);
const started = Date.now();
const deadline = started + 60_000 * Number(MUTATION_MINUTES);
/** Nothing is begun so late that the tests that all survivors pass would not be done by the end. */
const lastStart = deadline - Math.min(130_000, 10_000 * Number(MUTATION_MINUTES));
const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`;

/** What is mutated, its share of the sample, the tests that are about it, and those that reach it beside these. */
const areas = [
  {
    name: 'src/audit/gradients',
    share: 0.22,
    holds: /^src\/audit\/gradients\//,
    own: /^test\/(?:audit\/(?:gradients|sharp-faults)|properties\/gradients)\//,
    others: /^test\/(?:audit|properties|report)\//,
  },
  {
    name: 'the rest of src/audit',
    share: 0.33,
    holds: /^src\/audit\//,
    own: /^test\/audit\/(?!gradients\/)/,
    others: /^test\/(?:audit|report|properties|campaign)\//,
  },
  {
    name: 'oracles',
    share: 0.18,
    holds: /^oracles\//,
    own: /^test\/oracles\//,
    others: /^test\/(?:audit|kernels\/(?:gradients|features))\//,
  },
  {
    name: 'properties',
    share: 0.15,
    holds: /^properties\//,
    own: /^test\/properties\//,
    others: /^test\/(?:campaign|report)\//,
  },
  {
    name: 'src/machine/ordering',
    share: 0.12,
    holds: /^src\/machine\/ordering\//,
    own: /^test\/machine\//,
    others: /^test\/ptx\//,
  },
];

/** Numbers in [0, 1) that the seed alone decides (splitmix32). */
function createRandom() {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** Sources below a folder that are mutated: as in stryker.config.js. */
function sourcesIn(folder) {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/(?:\.generated|\.d|index)\.ts$/.test(name))
    .filter((name) => !name.includes('assembly/'))
    .map((name) => `${folder}/${name}`);
}

/** All mutants that Stryker makes of the sources, but for other words in messages. */
async function listMutants() {
  const entry = createRequire(import.meta.url).resolve('@stryker-mutator/instrumenter');
  const part = (name) => import(new URL(name, pathToFileURL(entry)).href);
  const [{ Instrumenter }, { createParser }, { print }, { transform }] = await Promise.all(
    ['index.js', 'parsers/index.js', 'printers/index.js', 'transformers/index.js'].map(part),
  );
  const nothing = () => false;
  const names = ['debug', 'info', 'warn', 'error', 'isDebugEnabled'];
  const logger = Object.fromEntries(names.map((name) => [name, nothing]));
  const instrumenter = new Instrumenter(logger, createParser, print, transform);
  const options = { plugins: null, excludedMutations: ['StringLiteral'], ignorers: [] };
  const mutants = [];
  const only = new RegExp(MUTATION_FILES);
  for (const folder of ['src/audit', 'oracles', 'properties', 'src/machine/ordering'])
    for (const name of sourcesIn(folder).filter((path) => only.test(path))) {
      const content = readFileSync(join(root, name), 'utf8');
      const file = { name, content, mutate: true };
      const { mutants: found } = await instrumenter.instrument([file], options);
      for (const { location, mutatorName, replacement } of found)
        // Text with numbers in it is left in by the option that leaves out words.
        if (mutatorName !== 'StringLiteral')
          mutants.push({ path: name, location, mutator: mutatorName, replacement });
    }
  return mutants;
}

/** What gives mutants one after the other, by chance, of each area its share. */
function createDraw(mutants) {
  const random = createRandom();
  const queues = areas.map((area) => ({ area, left: [], drawn: 0 }));
  for (const mutant of mutants)
    queues.find(({ area }) => area.holds.test(mutant.path)).left.push(mutant);
  for (const { left } of queues)
    for (let i = left.length - 1; i > 0; i--) {
      const other = Math.floor(random() * (i + 1));
      [left[i], left[other]] = [left[other], left[i]];
    }
  return () => {
    const open = queues.filter(({ left }) => left.length > 0);
    if (open.length === 0 || Date.now() > lastStart) return null;
    const queue = open.reduce((a, b) => (b.drawn / b.area.share < a.drawn / a.area.share ? b : a));
    queue.drawn++;
    return { area: queue.area, mutant: queue.left.pop() };
  };
}

const copied = ['src', 'oracles', 'properties', 'kernels', 'test', 'scripts', 'types', '.vitest'];
const work = mkdtempSync(join(tmpdir(), 'flashproof-mutants-'));

/** A copy of the repository; what is never changed is linked. */
function copyRepository(index) {
  const to = join(work, `copy-${index}`);
  mkdirSync(to);
  for (const name of readdirSync(root))
    if (copied.includes(name) || /\.(?:json|[jt]s)$/.test(name))
      execFileSync('cp', ['-a', join(root, name), to]);
    else if (name !== '.git') symlinkSync(join(root, name), join(to, name));
  return to;
}

/** Runs a program of Node.js in a copy, for so many milliseconds; with long tests whole, or as in a default run. */
function runIn(folder, args, time, LONG = '0') {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    // The tests are the same for every mutant.
    env: { ...process.env, LONG, TEST_SEED: '20261121', CI: '', NO_COLOR: '1' },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => (output = (output + data).slice(-20_000)));
  return new Promise((resolve) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      process.kill(-child.pid, 'SIGKILL');
    }, time);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, isLate, output });
    });
  });
}

/** Runs tests in a copy, until the first that fails. */
const runTests = (folder, files, { options, time, long }) =>
  runIn(
    folder,
    [join(folder, 'node_modules/vitest/vitest.mjs'), 'run', ...files, ...options],
    time,
    long,
  );

/** Compiles a copy, after the first time only what changed. */
const checkTypes = (folder, time) =>
  runIn(
    folder,
    [
      ...[join(folder, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', 'tsconfig.json'],
      ...['--incremental', '--tsBuildInfoFile', join(folder, 'types.tsbuildinfo')],
    ],
    time,
  );

/** Runs all that may be tried once without a mutant; by area the tests in the order in which they are tried. */
async function planTests(folder) {
  const config = readFileSync(join(root, 'vitest.config.ts'), 'utf8');
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name}`)
    .filter((name) => name.endsWith('.test.ts') && !config.includes(`'${name}'`))
    .filter((name) => areas.some(({ own, others }) => own.test(name) || others.test(name)));
  const report = join(work, 'baseline.json');
  const options = ['--reporter=json', `--outputFile=${report}`, `--maxWorkers=${MUTATION_WORKERS}`];
  const { output } = await runTests(folder, files, { options, time: 3_600_000 });
  if (!existsSync(report)) throw new Error(`the tests do not run without a mutant:\n${output}`);
  const took = new Map();
  const failing = [];
  for (const one of JSON.parse(readFileSync(report, 'utf8')).testResults) {
    const file = one.name.slice(one.name.lastIndexOf('/test/') + 1);
    took.set(file, (one.endTime - one.startTime) / 1000);
    if (one.status !== 'passed') failing.push(file);
  }
  console.log(
    `${seconds()}: ${files.length} files of tests; left out, since they fail without a mutant: ${failing.join(' ') || 'none'}`,
  );
  const passing = files.filter((name) => !failing.includes(name));
  const isLong = (name) =>
    readFileSync(join(root, name), 'utf8').includes('turns(import.meta.url)');
  return new Map(
    areas.map(({ name, own, others }) => {
      const ofArea = passing.filter((file) => own.test(file));
      const isQuick = (file) => (took.get(file) ?? 0) < 1.5;
      const stages = [
        ofArea.filter(isQuick),
        ofArea.filter((file) => !isQuick(file)),
        passing.filter((file) => others.test(file) && !own.test(file)),
      ];
      const usual = stages
        .filter((stage) => stage.length > 0)
        .map((stage) => {
          const sum = stage.reduce((all, file) => all + (took.get(file) ?? 0), 0);
          return { files: stage, time: 120_000 + 8000 * sum };
        });
      return [name, { usual, long: ofArea.filter(isLong) }];
    }),
  );
}

/** The text with a mutant, and what stood there. */
function applied(text, { location: { start, end }, replacement }) {
  const lines = text.split('\n');
  const at = ({ line, column }) =>
    lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0) + column;
  const [from, to] = [at(start), at(end)];
  return {
    mutated: text.slice(0, from) + replacement + text.slice(to),
    original: text.slice(from, to),
  };
}

/**
 * How the tests of a default run, the compiler and the long tests of its area take a mutant that stands in a copy.
 * @param failsAnyway whether a file of tests fails without the mutant too, as one may on a busy machine: then it kills nothing
 */
async function judgeMutant(folder, { usual, long }, failsAnyway) {
  const options = ['--bail=1', '--maxWorkers=1'];
  const left = () => Math.max(deadline - Date.now(), 1000);
  const killerOf = async (files, { time, long }) => {
    for (let tried = files; tried.length > 0;) {
      const run = await runTests(folder, tried, { options, time, long });
      if (run.isLate) return { isLate: true };
      if (run.code === 0) return null;
      const killer = /FAIL\s+(.*)/.exec(run.output)?.[1] ?? 'a test';
      const file = /test\/\S+\.test\.ts/.exec(killer)?.[0];
      if (file === undefined || !(await failsAnyway(file, long))) return { killer };
      tried = tried.filter((one) => one !== file);
    }
    return null;
  };
  for (const { files, time } of usual) {
    const isCut = left() < time;
    const found = await killerOf(files, { time: Math.min(time, left()), long: '0' });
    if (found?.isLate)
      return isCut
        ? { status: 'unfinished', killer: null }
        : { status: 'killed', killer: 'it takes too long' };
    if (found !== null) return { status: 'killed', killer: found.killer };
  }
  const types = await checkTypes(folder, left());
  if (types.isLate) return { status: 'unfinished', killer: null };
  if (types.code !== 0)
    return { status: 'refused', killer: /error TS.*/.exec(types.output)?.[0] ?? null };
  // Long tests took no time without a mutant: one that they are not done with in time lives.
  const found = await killerOf(long, { time: left(), long: '1' });
  return found === null || found.isLate
    ? { status: 'survived', killer: null }
    : { status: 'killed by long', killer: found.killer };
}

/** Tries one mutant in a copy. */
async function tryMutant(folder, { area, mutant }, stages) {
  const path = join(folder, mutant.path);
  const text = readFileSync(path, 'utf8');
  const { mutated, original } = applied(text, mutant);
  writeFileSync(path, mutated);
  const failsAnyway = async (file, long) => {
    writeFileSync(path, text);
    const options = ['--maxWorkers=1'];
    const run = await runTests(folder, [file], { options, time: 300_000, long });
    writeFileSync(path, mutated);
    return run.isLate || run.code !== 0;
  };
  const { status, killer } = await judgeMutant(folder, stages, failsAnyway);
  writeFileSync(path, text);
  const { line, column } = mutant.location.start;
  const place = `${mutant.path}:${line + 1}:${column + 1}`;
  return { area: area.name, place, ...mutant, original, status, killer };
}

/** The share of an area that is killed, with its 95 % interval by Wilson. */
function scoreOf(area, results) {
  const tried = results.filter((one) => one.area === area && one.status !== 'unfinished');
  const n = tried.length;
  if (n === 0) return `${area}: none tried`;
  const count = (kind) => tried.filter(({ status }) => status === kind).length;
  const share = (count('killed') + count('refused')) / n;
  const z = 1.96;
  const middle = (share + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const half = (z * Math.sqrt((share * (1 - share)) / n + (z / (2 * n)) ** 2)) / (1 + z ** 2 / n);
  const percent = (x) => (100 * x).toFixed(1);
  const withLong = percent(share + count('killed by long') / n);
  return `${area}: ${percent(share)} % of ${n} fall, ${count('killed')} by tests of a default run and ${count('refused')} by types; between ${percent(middle - half)} and ${percent(middle + half)} % (95 %); ${withLong} % with its long tests`;
}

/** Writes what is known so far; returns it as text. */
function report(results) {
  const folder = join(root, 'reports/mutation');
  mkdirSync(folder, { recursive: true });
  const short = (code) => code.replace(/\s+/g, ' ').slice(0, 120);
  const listed = (kind) =>
    results
      .filter(({ status }) => status === kind)
      .map(
        (one) => `${one.place} ${one.mutator}: ${short(one.original)} → ${short(one.replacement)}`,
      );
  const scores = areas.map(({ name }) => scoreOf(name, results));
  const survivors = ['Survivors:', ...listed('survived')];
  const ofLong = ['Only long tests see:', ...listed('killed by long')];
  const text = [`seed ${seed}, ${seconds()}`, ...scores, '', ...survivors, '', ...ofLong].join(
    '\n',
  );
  writeFileSync(join(folder, `sample-${seed}.txt`), `${text}\n`);
  writeFileSync(join(folder, `sample-${seed}.json`), JSON.stringify(results, null, 1));
  return text;
}

const mutants = await listMutants();
console.log(`${seconds()}: ${mutants.length} mutants; seed ${seed}`);
const draw = createDraw(mutants);
const first = copyRepository(0);
const { code: refused, output: reasons } = await checkTypes(first, 600_000);
if (refused !== 0) throw new Error(`the types do not hold without a mutant:\n${reasons}`);
const plan = await planTests(first);
const results = [];
await Promise.all(
  Array.from({ length: Number(MUTATION_WORKERS) }, async (_, index) => {
    const folder = index === 0 ? first : copyRepository(index);
    for (let drawn; (drawn = draw()) !== null;) {
      results.push(await tryMutant(folder, drawn, plan.get(drawn.area.name)));
      report(results);
    }
  }),
);
console.log(report(results));
rmSync(work, { recursive: true, force: true });
