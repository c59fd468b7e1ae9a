/**
 * Writes the lists of docs/reference/compiled-instructions.md, between their marks, from the rows of instructions in
 * src/isa, src/ptx/instructions and src/ptx/program.
 *
 *   node scripts/documents/write-instructions.mjs            write the page
 *   node scripts/documents/write-instructions.mjs --print    print it
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = join(root, 'docs/reference/compiled-instructions.md');
const architectures = ['sm_90', 'sm_100', 'sm_103', 'sm_110', 'sm_120'];

const load = async (path) => (await runnerImport(join(root, path))).module;

/** Values by what `keyOf` says of them, in the order of the first of each. */
function groups(values, keyOf) {
  const found = new Map();
  for (const value of values) {
    const key = keyOf(value);
    found.set(key, [...(found.get(key) ?? []), value]);
  }
  return found;
}

/**
 * Lines that differ in one part are one line, with both parts in it.
 *
 * @param {string[][]} lines each in parts
 */
function merged(lines) {
  const kept = [];
  for (let line of lines) {
    for (let at = 0; at < kept.length; at++) {
      const other = kept[at];
      if (other.length !== line.length) continue;
      const places = line.flatMap((part, i) => (part === other[i] ? [] : [i]));
      if (places.length > 1 || line[0] !== other[0]) continue;
      if (places.some((i) => !line[i].startsWith('.') || !other[i].startsWith('.'))) continue;
      line = other.map((part, i) => (i === places[0] ? joined(part, line[i]) : part));
      kept.splice(at, 1);
      at = -1;
    }
    kept.push(line);
  }
  return kept;
}

/** A line that another is but for one modifier more, and a last operand for it: `setp.eq.and.f32 p, a, b, {!}c`; else null. */
function extended(short, long) {
  if (long.length !== short.length + 1) return null;
  const operands = short.at(-1);
  if (!long.at(-1).startsWith(`${operands}, `)) return null;
  const at = long.findIndex((part, i) => part !== short[i]);
  if (!short.slice(at, -1).every((part, i) => part === long[at + 1 + i])) return null;
  const rest = `${operands}{${long.at(-1).slice(operands.length)}}`;
  return [...short.slice(0, at), `{${long[at]}}`, ...short.slice(at, -1), rest];
}

/** Lines with those that extend them. */
function withExtended(lines) {
  const taken = new Set();
  return lines.flatMap((line) => {
    if (taken.has(line)) return [];
    const long = lines.find((other) => !taken.has(other) && extended(line, other) !== null);
    if (long === undefined) return [line];
    taken.add(long);
    return [extended(line, long)];
  });
}

function joined(one, other) {
  return [...new Set([...one.split('|'), ...other.split('|')])].join('|');
}

/** The parts of a line of syntax, with alternatives in place of what stands for them, but for what `names` shortens. */
function partsOf({ syntax, alternatives }, names) {
  const [name, ...operands] = syntax.split(' ');
  const parts = name.match(/^[^.{]+|\{[^}]*\}|\.[^.{]+/g) ?? [];
  return [
    ...parts.map((part) => {
      const key = part.replaceAll(/[.{}]/g, '');
      const spellings = alternatives[key];
      if (spellings === undefined) return part;
      const text = names.get(spellings.join('|')) ?? spellings.join('|');
      return part.startsWith('{') ? `{${text}}` : text;
    }),
    operands.length === 0 ? '' : ` ${operands.join(' ')}`,
  ];
}

/** Names for alternatives that are long and frequent: those of the syntax, numbered where lists differ. */
function nameAlternatives(rows) {
  const lists = rows.flatMap(({ alternatives }) =>
    Object.entries(alternatives).map(([key, list]) => ({ key, text: list.join('|') })),
  );
  const names = new Map();
  for (const [text, same] of groups(lists, (list) => list.text)) {
    if (text.length < 15 || text.length * same.length < 120) continue;
    const taken = [...names.values()];
    const base = same[0].key.replace(/^[a-z]/, (letter) => letter.toUpperCase());
    let name = `.${base}`;
    for (let i = 2; taken.includes(name); i++) name = `.${base}${i}`;
    names.set(text, name);
  }
  return names;
}

const code = (text) => `\`${text}\``;

/** A fact of a row; where few of its instructions have another than most, with their names. */
function factOf(row, key) {
  const values = [...groups(row.variants(), (variant) => variant[key])];
  const [[most], ...others] = values.sort(([, a], [, b]) => b.length - a.length);
  const exceptions = others.flatMap(([value, same]) =>
    same.length > 2
      ? [`or ${value}`]
      : [`(${same.map(({ name }) => code(name)).join(', ')}: ${value})`],
  );
  return [most, ...exceptions].join(' ');
}

/** What the rows of a section say, opcode by opcode. */
function sectionLines(rows, names) {
  return [...groups(rows, ({ opcode }) => opcode).values()].map((ofOpcode) => {
    const facts = groups(ofOpcode, (row) =>
      [factOf(row, 'meaning'), factOf(row, 'evidence'), row.also].filter(Boolean).join(', '),
    );
    const told = [...facts].map(([words, same]) => {
      const lines = withExtended(merged(same.map((row) => partsOf(row, names))));
      return `${lines.map((parts) => code(parts.join(''))).join(', ')}: ${words}`;
    });
    const line = `- ${told.join('; ')}`;
    if (line.length < 500) return line;
    return [`- ${ofOpcode[0].opcode}`, ...told.map((part) => `  - ${part}`)].join('\n');
  });
}

/** The instructions on registers of a lane, by the section of the manual. */
function laneLists(rows) {
  const names = nameAlternatives(rows);
  const legend = [...names].map(([text, name]) => `- ${code(name)}: ${code(text)}`);
  const sections = [...groups(rows, ({ section }) => section)].flatMap(([section, same]) => [
    `### ${section}`,
    sectionLines(same, names).join('\n'),
  ]);
  return ['These names stand for several modifiers:', legend.join('\n'), ...sections].join('\n\n');
}

/** The section of a source, without what names the instruction again. */
function sectionOf({ name, source }) {
  const text = source.replace('PTX ISA, ', '').replaceAll('"', '');
  return text === name
    ? 'of its name'
    : text.endsWith(`: ${name}`)
      ? text.slice(0, -name.length - 2)
      : text;
}

/** The words of an instruction with several forms. */
const wordsOf = ({ meaning }) => [meaning].flat().join(' or ');

/** Instructions that others see, and those of warps, by meaning, evidence and source. */
function visibleLists(instructions) {
  const lists = groups(
    instructions,
    (row) => `${wordsOf(row)}, ${row.evidence}, ${sectionOf(row)}`,
  );
  return [...lists]
    .map(([words, same]) => {
      const lines = merged(same.map(({ name }) => name.match(/^[^.]+|\.[^.]+/g)));
      return `- ${lines.map((parts) => code(parts.join(''))).join(', ')}: ${words}`;
    })
    .join('\n');
}

/** Instructions of control flow, by meaning. */
function controlLists(instructions) {
  const lists = groups(Object.entries(instructions), ([, row]) => wordsOf(row));
  return [...lists]
    .map(([words, same]) => `- ${same.map(([opcode]) => code(opcode)).join(', ')}: ${words}`)
    .join('\n');
}

/** The warp instructions of all architectures; where their evidence differs, each says of which it is. */
function warpRows(warpInstructions) {
  const rows = architectures.flatMap((architecture) =>
    warpInstructions(architecture).map(({ name, meaning, evidence, source }) => ({
      name,
      meaning,
      evidence,
      source,
      architecture,
    })),
  );
  return [...groups(rows, ({ name }) => name).values()].flatMap((same) => {
    const kinds = groups(same, ({ evidence, source }) => `${evidence} ${source}`);
    if (kinds.size === 1) return [same[0]];
    return [...kinds.values()].map((kind) => ({
      ...kind[0],
      evidence: `${kind[0].evidence} (${kind.map(({ architecture }) => architecture).join(', ')})`,
    }));
  });
}

const { laneRows } = await load('src/isa/index.ts');
const { addressRows } = await load('src/ptx/instructions/lane.ts');
const tables = await load('src/ptx/instructions/index.ts');
const { controlInstructions } = await load('src/ptx/program/index.ts');
const lists = {
  registers: laneLists([...laneRows, ...addressRows]),
  warps: visibleLists(warpRows(tables.warpInstructions)),
  barriers: visibleLists(tables.barrierInstructions),
  memory: visibleLists(tables.memoryInstructions),
  tensors: visibleLists(tables.tensorInstructions),
  control: controlLists(controlInstructions),
};

/** The page with the lists between their marks. */
function filled(text) {
  return Object.entries(lists).reduce((whole, [name, list]) => {
    const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    if (!whole.includes(begin) || !whole.includes(end)) throw new Error(`${page} lacks ${begin}`);
    return `${whole.split(begin)[0]}${begin}\n\n${list}\n\n${end}${whole.split(end)[1]}`;
  }, text);
}

const text = filled(readFileSync(page, 'utf8'));
if (process.argv[2] === '--print') process.stdout.write(text);
else writeFileSync(page, text);
