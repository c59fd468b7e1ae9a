/**
 * Draws docs/images/machine-trace.svg: one tile of FlashAttention-4's forward on the emulated machine, from a
 * trace that `flashproof emulate fa4 <problem> --machine --ctas 1 --trace <file>` wrote.
 *
 *   node scripts/documents/draw-machine-trace.mjs <problem.safetensors>          write the problem of the picture
 *   node scripts/documents/draw-machine-trace.mjs <trace.json> <picture.svg>     draw a trace's first CTA
 *
 * The problem is 256 queries and 6 blocks of 128 keys of a head dimension of 128, normally distributed:
 * two stages of one tile.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { scaleLinear } from 'd3-scale';
import { runnerImport } from 'vite';

const queries = 256;
const keys = 768;
const headDim = 128;

/** Writes normally distributed bf16 tensors, the same in every run. */
async function writeProblem(path) {
  const { module } = await runnerImport('src/io/index.ts');
  let state = 1;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const tensor = (rows) => {
    const values = Float32Array.from({ length: rows * headDim }, normal);
    const words = new Uint32Array(values.buffer);
    // Rounded half up: any neighbour will do for a picture.
    const data = Uint16Array.from(words, (word) => (word + 0x8000) >>> 16);
    return { format: 'bf16', shape: [1, rows, headDim], data };
  };
  await module.writeSafetensors(path, { q: tensor(queries), k: tensor(keys), v: tensor(keys) });
}

/** A coloured piece of a row: from when to when in clocks, what it is, and what is written in it. */
function piece(start, end, style, label, title) {
  return { start, end, style, label, title };
}

/** Adds a piece to a row, or lengthens the last one when it goes on with the same. */
function extend(row, next) {
  const last = row.at(-1);
  if (last !== undefined && last.title === next.title && next.start - last.end < 2)
    last.end = next.end;
  else row.push(next);
}

/** What a softmax warp is doing, by the place in the program. */
const softmaxPhases = {
  'S: loaded': ['load', ''],
  'registers being loaded': ['load', ''],
  'softmax: maxima': ['max', ''],
  'softmax: exponentials': ['exp', 'exp2'],
  'P: stored': ['store', ''],
  'P: stores awaited': ['store', ''],
  'P: last stores awaited': ['store', ''],
  'softmax: row sums': ['sum', ''],
};
/** What a correction warp is doing. */
const correctionPhases = {
  'α: read': ['vote', ''],
  'correction: vote': ['vote', ''],
  'O: loaded': ['correct', 'O·1/l'],
  'O: rescaled': ['correct', 'O·1/l'],
  'O: normalised': ['correct', 'O·1/l'],
  'O: staged': ['correct', 'O·1/l'],
  'registers being loaded': ['correct', 'O·1/l'],
};
const phaseTitles = {
  load: 'S from tensor memory to registers',
  max: 'row maxima',
  exp: 'exponentials',
  store: 'P from registers to tensor memory',
  sum: 'row sums',
  vote: 'asks whether O has to be rescaled',
  correct: 'O rescaled, or divided by the row sums',
};

/** The rows of the picture and the events that the arrows need, of the first CTA of a trace. */
function readTrace(path) {
  const { traceEvents } = JSON.parse(readFileSync(path, 'utf8'));
  if (traceEvents.some(({ args }) => args?.name === 'cluster 0, CTA 1'))
    throw new Error(`${path}: a trace of a pair of CTAs; make one with --ctas 1`);
  const own = traceEvents.filter(({ pid }) => pid === 1);
  const threads = new Map(
    own.filter(({ name }) => name === 'thread_name').map(({ tid, args }) => [args.name, tid]),
  );
  const clocks = (microseconds) => 1000 * microseconds;
  const eventsOf = (thread) => {
    if (!threads.has(thread)) throw new Error(`${path}: no track "${thread}" in its first CTA`);
    return own
      .filter(({ ph, tid }) => ph === 'X' && tid === threads.get(thread))
      .map(({ ts, dur, ...event }) => ({ ...event, start: clocks(ts), end: clocks(ts + dur) }));
  };
  const warpThread = (warp) =>
    [...threads.keys()].find((name) => name.startsWith(`warp ${warp} (`)) ?? `warp ${warp}`;

  const loads = [];
  for (const { name, args, start, end } of eventsOf('TMA loads')) {
    const block = Math.floor(Number(args.coordinates.split(', ')[1]) / 128);
    const what = name.split(':')[0];
    const label = `${what}${block}`;
    extend(loads, piece(start, end, `tma ${what.toLowerCase()}`, label, `${label} arrives`));
  }
  const products = [];
  const rounds = new Map();
  const multiplied = eventsOf('tensor core');
  const columnsOf = (what) => [
    ...new Set(
      multiplied.filter((e) => e.name === `${what}: multiplied`).map(({ args }) => args.column),
    ),
  ];
  const columns = { S: columnsOf('S'), O: columnsOf('O') };
  for (const { name, args, start, end } of multiplied) {
    const what = name.split(':')[0];
    const stage = columns[what].indexOf(args.column);
    const label = `${what}${stage}`;
    const last = products.at(-1);
    if (last?.label !== label) rounds.set(label, (rounds.get(label) ?? 0) + 1);
    const text = what === 'S' ? 'S = Q·Kᵀ' : 'O += P·V';
    const title = `${text}, stage ${stage}, block ${rounds.get(label)}`;
    extend(products, { ...piece(start, end, `mma ${what}${stage}`, label, title), stage, what });
  }
  const warpRow = (warp, group, phases) => {
    const row = [];
    for (const { name, start, end } of eventsOf(warpThread(warp))) {
      const [phase, label] = phases[name] ?? [];
      if (phase !== undefined)
        extend(row, piece(start, end, `${phase} ${group}`, label, phaseTitles[phase]));
    }
    return row;
  };
  const stores = [];
  eventsOf('TMA stores').forEach(({ args, start, end }) => {
    const label = `O${Math.floor(Number(args.coordinates.split(', ')[1]) / 128)}`;
    extend(stores, piece(start, end, 'tma o', label, `${label} is stored`));
  });
  const arrivals = [0, 1].map((stage) =>
    eventsOf(warpThread(4 * stage)).filter(
      ({ name }) => name === 'P full, O rescaled: softmax arrives',
    ),
  );
  return {
    rows: [
      ['TMA', loads],
      ['tensor core', products],
      ['softmax 0', warpRow(0, 'stage0', softmaxPhases)],
      ['softmax 1', warpRow(4, 'stage1', softmaxPhases)],
      ['correction', warpRow(8, 'both', correctionPhases)],
      ['epilogue', stores],
    ],
    products,
    arrivals,
  };
}

const width = 900;
const left = 92;
const right = 14;

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value) {
  return Math.round(10 * value) / 10;
}

/** A panel: rows over an axis of clocks. Returns the markup and where the rows lie. */
function panel({ rows }, { title, from, to, top, rowHeight, ticks }) {
  const x = scaleLinear([from, to], [left, width - right]);
  const bar = rowHeight - 8;
  const parts = [`<text class="head" x="16" y="${top}">${escape(title)}</text>`];
  const first = top + 14;
  const bottom = first + rows.length * rowHeight;
  for (const tick of x.ticks(ticks)) {
    const at = round(x(tick));
    parts.push(
      `<line class="grid" x1="${at}" x2="${at}" y1="${first}" y2="${bottom}"/>`,
      `<text class="tick" x="${at}" y="${bottom + 14}">${tick.toLocaleString('en-US')}</text>`,
    );
  }
  rows.forEach(([name, pieces], index) => {
    const y = first + index * rowHeight + 4;
    parts.push(
      `<text class="row" x="${left - 10}" y="${y + bar / 2 + 4}">${name}</text>`,
      `<rect class="idle" x="${left}" y="${y}" width="${width - left - right}" height="${bar}"/>`,
    );
    for (const { start, end, style, label, title } of pieces) {
      if (end <= from || start >= to) continue;
      const [begin, stop] = [x(Math.max(start, from)), x(Math.min(end, to))];
      const wide = Math.max(stop - begin, 1.4);
      // Pieces that follow one another are told apart by a hairline.
      const gap = wide > 4 ? 0.6 : 0;
      parts.push(
        `<g class="${style}"><title>${escape(title)}</title><rect x="${round(begin)}" y="${y}" width="${round(wide - gap)}" height="${bar}"/>`,
        label !== '' && wide > 6.4 * label.length + 2
          ? `<text x="${round(begin + wide / 2)}" y="${y + bar / 2 + 3.6}">${escape(label)}</text></g>`
          : '</g>',
      );
    }
  });
  const edge = (row, isBottom) => first + row * rowHeight + (isBottom ? rowHeight - 4 : 4);
  return { parts, x, bottom: bottom + 14, edge };
}

/** Arrows from S to the softmax that waits for it, and from P to the product that waits for it. */
function arrows({ rows, products, arrivals }, { x, edge }, from, to) {
  const parts = [];
  const draw = (stage, x1, y1, x2, y2) => {
    const middle = (y1 + y2) / 2;
    parts.push(
      `<path class="arrow stage${stage}" d="M${round(x1)} ${y1}C${round(x1)} ${middle} ${round(x2)} ${middle} ${round(x2)} ${y2}"/>`,
      `<circle class="dot stage${stage}" cx="${round(x2)}" cy="${y2}" r="2.2"/>`,
    );
  };
  for (const { stage, what, start, end } of products) {
    const softmax = 2 + stage;
    const next = rows[softmax][1].find((p) => p.style.startsWith('load') && p.start >= end);
    if (what === 'S' && end > from && next !== undefined && next.start < to)
      draw(stage, x(end), edge(1, true), x(next.start), edge(softmax, false));
    const told = arrivals[stage].filter((event) => event.start <= start).at(-1);
    if (what === 'O' && told !== undefined && told.start > from && start < to)
      draw(stage, x(told.start), edge(softmax, false), x(start), edge(1, true));
  }
  return parts;
}

const legend = [
  ['mma S0', 'S = Q·Kᵀ'],
  ['mma O0', 'O += P·V, stage 0'],
  ['mma S1', 'S = Q·Kᵀ'],
  ['mma O1', 'O += P·V, stage 1'],
  ['load stage0', 'S loaded, maxima'],
  ['exp stage0', 'exp2'],
  ['store stage0', 'P stored'],
  ['sum stage0', 'row sums'],
  ['vote both', 'vote'],
  ['idle', 'waits'],
];

function drawLegend(top) {
  let at = left;
  return legend.flatMap(([style, text]) => {
    const x = at;
    at += 20 + 5.45 * text.length + 8;
    return [
      `<g class="${style}"><rect class="${style === 'idle' ? 'idle' : ''}" x="${x}" y="${top - 9}" width="12" height="11"/></g>`,
      `<text class="key" x="${x + 16}" y="${top}">${escape(text)}</text>`,
    ];
  });
}

const style = `
    text { font: 11px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; }
    .page { fill: #ffffff; }
    .head { font-weight: 600; font-size: 13px; fill: #1f2328; }
    .row { text-anchor: end; font-size: 12px; fill: #1f2328; }
    .tick { text-anchor: middle; font-size: 10px; fill: #59636e; }
    .key { font-size: 10.5px; fill: #59636e; }
    .grid { stroke: #d1d9e0; stroke-width: 1; }
    .idle { fill: #818b98; fill-opacity: 0.13; }
    g text { text-anchor: middle; font-size: 10.5px; fill: #ffffff; }
    .S0 rect, .max.stage0 rect, .load.stage0 rect { fill: #8ec1f0; }
    .O0 rect, .exp.stage0 rect { fill: #1f6fbf; }
    .store.stage0 rect { fill: #4f9be0; }
    .sum.stage0 rect { fill: #b9d9f6; }
    .S1 rect, .max.stage1 rect, .load.stage1 rect { fill: #f6b980; }
    .O1 rect, .exp.stage1 rect { fill: #c65a0a; }
    .store.stage1 rect { fill: #e8872f; }
    .sum.stage1 rect { fill: #fad7b3; }
    .S0 text, .S1 text { fill: #1f2328; }
    .tma.q rect { fill: #6e7781; }
    .tma.k rect { fill: #4d9375; }
    .tma.v rect { fill: #2b6b50; }
    .tma.o rect, .correct rect { fill: #8250b8; }
    .vote rect { fill: #8250b8; }
    .arrow { fill: none; stroke-width: 1.1; }
    .arrow.stage0 { stroke: #1f6fbf; }
    .arrow.stage1 { stroke: #c65a0a; }
    .dot.stage0 { fill: #1f6fbf; }
    .dot.stage1 { fill: #c65a0a; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; }
      .head, .row { fill: #e6edf3; }
      .tick, .key { fill: #9198a1; }
      .grid { stroke: #30363d; }
      .idle { fill-opacity: 0.22; }
      .sum.stage0 rect { fill: #56789b; }
      .sum.stage1 rect { fill: #a3754b; }
      .arrow.stage0 { stroke: #6cb0f0; }
      .arrow.stage1 { stroke: #f0914a; }
      .dot.stage0 { fill: #6cb0f0; }
      .dot.stage1 { fill: #f0914a; }
    }`;

/** The picture of a trace. */
function draw(trace) {
  const end = Math.max(...trace.rows.flatMap(([, pieces]) => pieces.map((p) => p.end)));
  const scores = trace.products.filter(({ label }) => label === 'S0');
  if (scores.length < 5)
    throw new Error(`the trace has ${scores.length} blocks of keys; give one with 5 or more`);
  const [from, to] = [scores[2].start - 150, scores[4].end + 150];
  const whole = panel(trace, {
    title: `One tile: 2 × 128 queries, ${scores.length} blocks of 128 keys, one CTA`,
    from: 0,
    to: end,
    top: 24,
    rowHeight: 25,
    ticks: 9,
  });
  const busy = trace.rows.filter(([, pieces]) => pieces.some((p) => p.end > from && p.start < to));
  const detail = panel(
    { rows: busy },
    {
      title:
        'Two blocks of its steady state: one stage multiplies while the other is in its softmax',
      from,
      to,
      top: whole.bottom + 34,
      rowHeight: 38,
      ticks: 9,
    },
  );
  const keyTop = detail.bottom + 24;
  const height = keyTop + 34;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
    '<title id="title">FlashAttention-4\'s forward on the emulated machine, in clocks</title>',
    `<desc id="description">Rows for the TMA, the tensor core, both softmax groups, the correction warps and the epilogue over ${Math.round(end).toLocaleString('en-US')} clocks. The tensor core multiplies for stage 0 and stage 1 by turns; each softmax group works while the tensor core serves the other stage.</desc>`,
    `<style>${style}\n</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="8"/>`,
    ...whole.parts,
    ...detail.parts,
    ...arrows(trace, detail, from, to),
    ...drawLegend(keyTop),
    `<text class="key" x="${left}" y="${keyTop + 18}">TMA: when the bytes arrive. Estimated from the rates of an SM's units; latencies, TMA and tensor memory are assumed.</text>`,
    '</svg>',
    '',
  ].join('\n');
}

const [first, second] = process.argv.slice(2);
if (first === undefined) {
  process.stderr.write('give <problem.safetensors> to write, or <trace.json> <picture.svg>\n');
  process.exitCode = 2;
} else if (second === undefined) await writeProblem(first);
else writeFileSync(second, draw(readTrace(first)));
