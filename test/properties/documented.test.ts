import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import {
  describeRegime,
  doutKinds,
  lawIds,
  laws,
  recurrentLawIds,
  recurrentLaws,
  recurrentRegimeNames,
  recurrentRegimes,
  regimeNames,
  resolvePromises,
} from '../../properties/index.js';
import { addCommands } from '../../src/cli/program.js';

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

/** Without the line breaks and the padding of tables, which are the formatter's. */
function plain(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('\\|', '|');
}

const page = read('docs/reference/properties.md');

/** What stands below a heading of the page. */
function section(heading: string): string {
  const parts = page.split(/^## /m).map((part) => part.split('\n'));
  return plain((parts.find(([first]) => first === heading) ?? []).slice(1).join('\n'));
}

/** Fails with the text that is missing below a heading, rather than with all that is there. */
function expectIn(heading: string, text: string): void {
  expect(section(heading).includes(plain(text)), `${heading} lacks:\n${text}\n`).toBe(true);
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

describe('docs/reference/properties.md', () => {
  it.each(lawIds)('states law %s, its reason and what may be promised of it', (id) => {
    const { statement, reason, strengths, usual } = laws[id];
    const others = [...strengths, 'none'].filter((strength) => strength !== usual).join(', ');
    const item = `- **${id}** (${usual}; or ${others}). ${capitalized(statement)}. ${reason}`;
    expectIn('The laws', item);
  });

  it('lists the laws and the regimes that there are, in their order', () => {
    const listed = [...section('The laws').matchAll(/- \*\*([\w-]+)\*\* \(/g)].map(([, id]) => id);
    expect(listed).toEqual(lawIds);
    const rows = page.split('\n').flatMap((line) => /^\| ([\w-]+) +\|/.exec(line)?.[1] ?? []);
    expect(rows.filter((name) => name !== 'regime' && regimeNames.some((r) => r === name))).toEqual(
      regimeNames,
    );
  });

  it.each(regimeNames)('says of regime %s what it is and provokes', (name) => {
    const { description, provokes } = describeRegime(name);
    expectIn('The regimes', `| ${name} | ${description} | ${provokes} |`);
  });

  it.each(recurrentLawIds)('states law %s of recurrences, its reason and its strength', (id) => {
    const { statement, reason, usual } = recurrentLaws[id];
    expectIn('Laws of recurrences', `- **${id}** (${usual}). ${capitalized(statement)}. ${reason}`);
  });

  it.each(recurrentRegimeNames)('says of regime %s of recurrences what it is', (name) => {
    const { description, provokes } = recurrentRegimes[name];
    expectIn('Laws of recurrences', `- **${name}**: ${description}. For ${provokes}.`);
  });

  it.each(Object.entries(doutKinds))('says of dO %s what it is', (name, kind) => {
    expectIn('Gradients', `| \`${name}\` | ${kind.description} | ${kind.provokes} |`);
  });

  it.each(Object.entries(resolvePromises()))('gives the default of promise %s', (name, value) => {
    const rows = section('Promises').split(`| \`${name}\` | `);
    expect(rows).toHaveLength(2);
    const usual = rows[1].split(' | ')[1];
    if (typeof value === 'boolean') expect(usual).toBe(value ? 'yes' : 'no');
    else if (typeof value === 'number') expect(usual).toBe(String(value));
    else if (Array.isArray(value)) expect(usual).toBe(value.join(', ') || 'none');
    else expect(usual).not.toBe('');
  });

  it('gives the default limits of scores', () => {
    const { raw, scaled } = resolvePromises().scoreLimit;
    expect(section('Promises')).toContain(`2^${Math.log2(raw)} and 2^${Math.log2(scaled)}`);
  });

  it('names every option of flashproof check', () => {
    const program = new Command();
    addCommands(program);
    const options = program.commands
      .find((one) => one.name() === 'check')!
      .options.filter(({ hidden }) => !hidden);
    expect(options.length).toBeGreaterThan(20);
    const missing = options.map(({ long }) => long!).filter((long) => !page.includes(long));
    expect(missing).toEqual([]);
  });

  it('shows a law and a file of promises as they are', () => {
    expect(page).toContain(read('properties/laws/head-laws.ts').trim());
    expect(page).toContain(read('examples/python/promises.json').trim());
  });
});

describe('docs/guide/your-kernel.md', () => {
  it('shows the adapter of the Python example as it is', () => {
    const adapter = read('examples/python/flashproof_kernel.py');
    const loop = adapter.slice(adapter.indexOf('for line in sys.stdin:')).trim();
    expect(loop).toContain('json.loads');
    expect(read('docs/guide/your-kernel.md')).toContain(loop);
  });
});
