/**
 * Draws docs/images/architecture.svg: the folders and the arrows of dependence between them, from the table
 * `arrows` of eslint.config.js, which the lint enforces. What each folder is comes from the table in
 * CONTRIBUTING.md.
 *
 *   node scripts/documents/draw-architecture.mjs            write the picture
 *   node scripts/documents/draw-architecture.mjs --print    print it
 *
 * A folder stands above all that it may import. Arrows that follow from others are left out.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { arrows } from '../../eslint.config.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Files that every folder may import, and entry points: no folders, so they are not drawn. */
const left = ['words', 'request-error', 'reuse', 'problem', 'index'];
/** What stands elsewhere than the folder that it lies in: texts of results of jobs, which make documents. */
const apart = ['report/text/machine', 'report/text/launch', 'report/html/launch'];
/** A folder within a folder is drawn as the outer one, which imports what its parts import. */
const outer = (name) => (apart.includes(name) ? name : name.split('/')[0]);
const names = [...new Set(Object.keys(arrows).map(outer))].filter((name) => !left.includes(name));
const imports = Object.fromEntries(
  names.map((name) => {
    const parts = Object.keys(arrows).filter((part) => outer(part) === name);
    const all = new Set(parts.flatMap((part) => arrows[part]).map(outer));
    return [name, names.filter((other) => other !== name && all.has(other))];
  }),
);

/** Everything that a folder may reach, itself excepted. */
function reach(name) {
  return new Set(imports[name].flatMap((other) => [other, ...reach(other)]));
}

/** The arrows that do not follow from others. */
function direct(name) {
  const own = imports[name];
  return own.filter((target) => !own.some((other) => other !== target && reach(other).has(target)));
}

/**
 * Where each folder stands: row from the top, and column. Chosen so that no arrow passes behind a folder;
 * that none points up is checked.
 */
const places = {
  cli: [0, 2.3],
  browser: [1, 2.9],
  campaign: [1, 1.6],
  'report/text/machine': [1, 4],
  'report/text/launch': [2, 5.4],
  'report/html/launch': [1, 5.4],
  jobs: [3, 3.3],
  report: [4, 2.3],
  profile: [5, 1.3],
  attribution: [6, 0],
  properties: [6, 1],
  bench: [5, 4],
  audit: [7, 0.5],
  conform: [7, 2.3],
  emulate: [7, 3.3],
  meaning: [7, 5],
  kernels: [8, 2.3],
  ptx: [8, 5],
  machine: [9, 2.3],
  isa: [10, 2.3],
  oracles: [11, 0.5],
  hardware: [11, 2.3],
  io: [11, 4],
  arith: [12, 1],
  simd: [12, 2.3],
  formats: [13, 1],
};
for (const name of names) {
  if (!Object.hasOwn(places, name)) throw new Error(`${name} has no place in the picture yet`);
  const upward = imports[name].find((other) => places[other][0] <= places[name][0]);
  if (upward !== undefined) throw new Error(`${upward} must stand below ${name}`);
}

/** What a folder is, in the words of CONTRIBUTING.md. */
function description(name) {
  const table = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  const row = new RegExp(`^\\| \`(?:src/)?${name}\` +\\| ([^|;]+?) *[|;]`, 'm').exec(table);
  if (row === null) throw new Error(`CONTRIBUTING.md does not say what ${name} is; add it there`);
  return row[1];
}

const box = { width: 164, height: 66, gapX: 22, gapY: 40 };
const margin = 16;
const lineLength = 29;

/** A text in lines of at most `lineLength` characters. */
function wrap(text) {
  const lines = [''];
  for (const word of text.split(' '))
    if (`${lines.at(-1)} ${word}`.trim().length <= lineLength)
      lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
    else lines.push(word);
  return lines;
}

const rows = Math.max(...names.map((name) => places[name][0])) + 1;
const columns = Math.max(...names.map((name) => places[name][1])) + 1;
const width = 2 * margin + columns * (box.width + box.gapX) - box.gapX;
const height = 2 * margin + rows * (box.height + box.gapY) - box.gapY;

/** The middle of a folder's box. */
function centre(name) {
  const [row, column] = places[name];
  return {
    x: Math.round(margin + box.width / 2 + column * (box.width + box.gapX)),
    y: margin + box.height / 2 + row * (box.height + box.gapY),
  };
}

/** A curve to the column of what a folder imports, above the next row, and a line down to it. */
function arrow(from, to) {
  const [start, end] = [centre(from), centre(to)];
  const [top, bottom] = [start.y + box.height / 2, end.y - box.height / 2 - 5];
  const [turn, level] = [top + box.gapY / 2, top + box.gapY - 5];
  return `<path d="M${start.x} ${top}C${start.x} ${turn} ${end.x} ${turn} ${end.x} ${level}V${bottom}"/>`;
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function folder(name) {
  const { x, y } = centre(name);
  const lines = wrap(description(name)).map(
    (line, at) => `<tspan x="${x}" dy="${at === 0 ? 16 : 13}">${escape(line)}</tspan>`,
  );
  return `<g><rect x="${x - box.width / 2}" y="${y - box.height / 2}" width="${box.width}" height="${box.height}" rx="6"/><text x="${x}" y="${y - 15}"><tspan class="name">${name}</tspan>${lines.join('')}</text></g>`;
}

const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Folders of flashproof; each may import those that its arrows lead to">
<style>
  svg { background: #fff; font: 10px system-ui, sans-serif; }
  rect { fill: #f4f6fa; stroke: #44546a; }
  text { text-anchor: middle; fill: #222; }
  .name { font-size: 13px; font-weight: 600; }
  path { fill: none; stroke: #7a8aa0; marker-end: url(#head); }
  @media (prefers-color-scheme: dark) {
    svg { background: #11151b; }
    rect { fill: #1a2029; stroke: #7a8aa0; }
    text { fill: #e6eaf0; }
  }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" style="fill:#7a8aa0;stroke:none;marker-end:none"/></marker></defs>
${names.flatMap((name) => direct(name).map((target) => arrow(name, target))).join('\n')}
${names.map(folder).join('\n')}
</svg>
`;
if (process.argv[2] === '--print') process.stdout.write(picture);
else writeFileSync(join(root, 'docs/images/architecture.svg'), picture);
