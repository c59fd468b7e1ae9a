import { quantities } from '../../src/problem/index.js';
import { spawnSync } from 'node:child_process';
import { parseHTML } from 'linkedom';
import { describe, expect, test } from 'vitest';
import type { TechniqueTable } from '../../src/attribution/index.js';
import { formatNumber } from '../../src/words/index.js';
import type { ElementTest, ErrorProfile } from '../../src/audit/index.js';
import { fromReported } from '../../src/report/json/report-number.js';
import type { AuditReport, JudgedReport } from '../../src/report/json/audit-report.js';
import {
  gatherPlotData,
  renderHtml,
  type HtmlReport,
  type PlotData,
} from '../../src/report/html/index.js';
import { worstRowOf } from '../../src/report/text/index.js';
import { lazily } from '../../src/reuse.js';
import { decadeDomain, decadeLabel, decades, octaveLabel } from '../../src/report/html/drawing.js';
import { commandLines } from '../../src/report/html/provenance.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import {
  comparedOutputs,
  comparedReport,
  executionFailure,
  judgedCases,
  lseOf,
  outOf,
  reports,
} from './cases.js';

const inTurn = turns(import.meta.url);

/** Elements of an output of any size whose bounds are made up: for the size and the form of a page. */
function madeUpPlots(
  { heads, queries, columns }: { heads: number; queries: number; columns: number },
  options: Parameters<typeof gatherPlotData>[1] = {},
): PlotData {
  const rows = heads * queries;
  const size = rows * columns;
  let state = 1;
  const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const filled = (length: number, value: () => number) => {
    const values = new Float64Array(length);
    for (let i = 0; i < length; i++) values[i] = value();
    return values;
  };
  const exact = filled(size, uniform);
  const errors = Float64Array.from({ length: 64 }, (_, i) => 100 ** (i / 16 - 3));
  const none = new Float64Array(0);
  const bounds = { total: filled(size, () => 1), systematic: none, known: none, deviation: none };
  return gatherPlotData(
    {
      // Every neighbour has another colour, and every row errs otherwise: the worst for the page's size.
      outputs: {
        out: {
          quantity: quantities[0],
          format: 'bf16',
          values: exact.map((x) => x + errors[Math.floor(64 * uniform())]),
        },
        lse: null,
      },
      bounds: { quantities: { out: bounds, lse: bounds }, unit: new Int32Array(0) },
      rows: {
        visibleKeys: Int32Array.from({ length: rows }, (_, row) => 1 + (row % queries)),
        entropy: filled(rows, () => 12 * uniform()),
        lag: filled(rows, () => 8 * uniform()),
      },
      reference: {
        shape: {
          batch: 1,
          heads,
          kvHeads: heads,
          groupSize: 1,
          queries,
          keys: queries,
          qkDim: columns,
          vDim: columns,
        },
        quantities: {
          out: { values: exact, radius: none, magnitude: none },
          lse: { values: new Float64Array(rows), radius: none, magnitude: null },
        },
        maximum: new Float64Array(rows),
        denominator: new Float64Array(rows),
        level: new Uint8Array(0),
      },
    },
    options,
  );
}

const plots = madeUpPlots({ heads: 2, queries: 20, columns: 8 });
const pooled = madeUpPlots({ heads: 2, queries: 20, columns: 8 }, { maps: 0 });

function judgedReport(name: string): JudgedReport {
  return judgedCases[name].report as JudgedReport;
}

const withTechniques = judgedReport('O × 1.5, with techniques');
const exp2 = [
  {
    name: 'a polynomial',
    use: 'Computes some.',
    inputs: 16,
    ranges: Array.from({ length: 16 }, (_, i) => ({ x: i / 16 - 1, low: -i * 1e-6, high: 2e-6 })),
  },
];

function pageOf(report: AuditReport, changed: Partial<HtmlReport> = {}): HtmlReport {
  return {
    report,
    plots: report.outputs === null ? null : plots,
    exp2: [],
    compared: [],
    identification: null,
    commands: [{ purpose: 'This page', words: ['flashproof', 'audit'] }],
    ...changed,
  };
}

const full: HtmlReport = pageOf(withTechniques, {
  exp2,
  compared: [
    { name: 'mine', report: withTechniques, plots: pooled, difference: null },
    { name: 'theirs', report: judgedReport('pass'), plots: pooled, difference: null },
  ],
  identification: 'The output is\nthat of nobody.',
});

/** Reports that TEST_SEED draws; two that differ most are rendered in any case, by tests of their own. */
const someReports = sampled(reports, 4);

/** A page of every one of them, by name; made once. */
const pages = lazily(async () => {
  const html = new Map<string, string>();
  for (const [name, report] of someReports) html.set(name, await renderHtml(pageOf(report)));
  return html;
});

function parsed(html: string) {
  return parseHTML(html).document;
}

/** What makes a page unusable to some reader, or not self-contained. */
function faults(html: string): string[] {
  const document = parsed(html);
  const all = [...document.querySelectorAll('*')];
  const found: string[] = [];
  const count = (selector: string) => document.querySelectorAll(selector).length;
  for (const selector of ['h1', 'main', 'header', 'footer', 'nav', 'title', 'html[lang]'])
    if (selector !== 'title' && count(selector) !== 1)
      found.push(`${count(selector)} of ${selector}`);
  if (document.querySelectorAll('head > title').length !== 1) found.push('no title');
  const ids = all.map((node) => node.getAttribute('id')).filter((id) => id !== null);
  if (new Set(ids).size !== ids.length) found.push('identifiers that are not unique');
  const text = (id: string) => document.querySelector(`[id="${id}"]`)?.textContent ?? '';
  for (const node of document.querySelectorAll('[aria-labelledby]'))
    for (const id of node.getAttribute('aria-labelledby')!.split(' '))
      if (text(id).trim() === '') found.push(`nothing called ${id}`);
  for (const link of document.querySelectorAll('a')) {
    const target = link.getAttribute('href') ?? '';
    if (!target.startsWith('#') || !ids.includes(target.slice(1))) found.push(`link to ${target}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
    const own = Number(heading.tagName.slice(1));
    if (own > level + 1) found.push(`h${own} below h${level}`);
    level = own;
  }
  for (const svg of document.querySelectorAll('svg')) {
    const hidden = svg.getAttribute('aria-hidden') === 'true';
    if (!hidden && svg.getAttribute('role') !== 'img') found.push('an svg that is no image');
    if (!hidden && svg.getAttribute('aria-labelledby') === null)
      found.push('an svg without a name');
  }
  for (const figure of document.querySelectorAll('figure')) {
    if (figure.querySelector('figcaption h3') === null) found.push('a figure without a caption');
    const near = figure.querySelector('table') ?? figure.parentElement!.querySelector('table');
    if (near === null) found.push('a figure without a table');
  }
  for (const table of document.querySelectorAll('table')) {
    if (table.querySelector('caption') === null) found.push('a table without a caption');
    for (const row of table.querySelectorAll('tbody tr'))
      if (row.querySelector('th[scope=row]') === null) found.push('a row without a heading');
  }
  for (const node of all)
    for (const { name, value } of [...node.attributes]) {
      if (name.startsWith('on')) found.push(`a handler ${name}`);
      if (['src', 'srcset', 'action', 'data', 'poster', 'xlink:href'].includes(name))
        found.push(`${name}=${value}`);
      if (name === 'style' && /url\(/.test(value)) found.push(`style ${value}`);
    }
  for (const name of [
    'script',
    'link',
    'iframe',
    'object',
    'embed',
    'img',
    'image',
    'form',
    'base',
  ])
    for (const node of document.querySelectorAll(name))
      if (name !== 'script' || node.getAttribute('type') !== 'application/json')
        found.push(`a ${name}`);
  if (/@import|url\(/.test(document.querySelector('style')!.textContent ?? ''))
    found.push('a style sheet that loads');
  if (/https?:\/\//.test(html)) found.push('an address');
  if (
    /NaN|undefined/.test(
      [...document.querySelectorAll('path, rect, circle')].map((node) => node.outerHTML).join(''),
    )
  )
    found.push('a drawing that is broken');
  return found;
}

describe('an HTML report', () => {
  inTurn(
    'has landmarks, headings, names and tables, and loads nothing, whatever was judged',
    async () => {
      for (const [name, html] of await pages()) expect(faults(html), name).toEqual([]);
      expect(faults(await renderHtml(full))).toEqual([]);
      const sideBySide = pageOf(comparedReport, { compared: comparedOutputs });
      expect(faults(await renderHtml(sideBySide))).toEqual([]);
      expect(faults(await renderHtml(pageOf(withTechniques, { plots: null })))).toEqual([]);
    },
  );

  inTurn('draws outputs that are empty, have a single element, or many heads', async () => {
    const shapes = [
      { heads: 1, queries: 0, columns: 8 },
      { heads: 1, queries: 1, columns: 1 },
      { heads: 40, queries: 5, columns: 3 },
      { heads: 1, queries: 300, columns: 200 },
    ];
    for (const shape of shapes) {
      const html = await renderHtml(pageOf(withTechniques, { plots: madeUpPlots(shape) }));
      expect(faults(html), JSON.stringify(shape)).toEqual([]);
    }
    const many = await renderHtml(pageOf(withTechniques, { plots: madeUpPlots(shapes[2]) }));
    expect(many).toContain('The 8 heads with the largest shares are shown; 32 others');
  });

  test('comes in the order: verdict, findings, techniques, places, rows, sizes, …', async () => {
    const html = await renderHtml(full);
    const ids = [...parsed(html).querySelectorAll('.verdict, section')].map(({ id }) => id);
    expect(ids).toEqual([
      ...['verdict', 'findings', 'techniques', 'elements', 'rows', 'ulps', 'exp2', 'comparison'],
      ...['usual', 'reproduce', 'provenance'],
    ]);
    expect(parsed(html).querySelector('pre')!.textContent).toBe('The output is\nthat of nobody.\n');
  });

  test('shows the places of the errors beside the verdict, of several heads by tiles', async () => {
    // The second tile has two elements of each head, whose largest differ.
    const plots = madeUpPlots({ heads: 3, queries: 130, columns: 1 });
    const document = parsed(await renderHtml(pageOf(withTechniques, { plots })));
    const glances = [...document.querySelectorAll('header .glance')];
    expect(glances.map((glance) => glance.getAttribute('href'))).toEqual([
      '#elements',
      '#elements',
    ]);
    const cells = document.querySelector('#elements #worst-cells')!;
    expect(glances[0].querySelector('use')!.getAttribute('href')).toBe(`#${cells.id}`);
    expect(cells.querySelectorAll('path').length).toBeGreaterThan(1);
    expect(glances[1].textContent).toContain('3 heads × 2 tiles of 128 queries');
    // Each cell is the largest share of its head and tile, whose elements the maps of the heads have.
    const { overview, maps, columnCells, rowsPerCell } = plots.heat;
    expect(new Set(overview!.shares).size).toBeGreaterThan(3);
    for (let tile = 0; tile < 2; tile++)
      for (const { head, shares } of maps) {
        const perTile = (128 / rowsPerCell) * columnCells;
        const own = shares.subarray(tile * perTile, (tile + 1) * perTile);
        expect(overview!.shares[tile * 3 + head!]).toBe(Math.max(...own));
      }
  });

  test('has got, exact and bound of the worst row beside a failure, and folds what is long', async () => {
    const html = await pages();
    const failures = someReports.filter(([, { verdict }]) => verdict.findings.length > 0);
    expect(failures.length).toBeGreaterThan(0);
    for (const [name, report] of failures) {
      const document = parsed(html.get(name)!);
      const numbers = worstRowOf(report)?.numbers ?? null;
      const shown = [...document.querySelectorAll('.worst-row dd')].map((dd) => dd.textContent);
      expect(shown, name).toEqual(
        numbers === null ? [] : [numbers.got, numbers.exact, `± ${numbers.bound}`],
      );
      const folded = document.querySelector('#findings details.printed')!;
      expect(folded.hasAttribute('open'), name).toBe(false);
      for (const { statement } of report.verdict.findings)
        expect(folded.textContent, name).toContain(statement);
    }
  });

  test('says of verdict, causes and numbers what the JSON report says, which it holds', async () => {
    const html = await pages();
    for (const [name, report] of someReports) {
      const document = parsed(html.get(name)!);
      const textOf = (selector: string) =>
        document.querySelector(selector)!.textContent!.replace(/\s+/g, ' ');
      expect(textOf('.verdict').trim(), name).toBe(report.verdict.sentence);
      for (const { statement } of report.verdict.findings)
        expect(textOf('#findings'), name).toContain(`${statement}.`);
      for (const evidence of report.verdict.diagnosis?.evidence ?? [])
        expect(textOf('#findings'), name).toContain(`${evidence}.`);
      expect(JSON.parse(document.querySelector('#report')!.textContent!), name).toEqual(report);
      expect(textOf('#provenance')).toContain(report.inputs.problem.sha256);
      if (report.outputs === null) continue;
      const elements = fromReported<ElementTest>(outOf(report).elements);
      const error = fromReported<ErrorProfile>(outOf(report).error);
      const values = [...document.querySelectorAll('data')].map((node) =>
        Number(node.getAttribute('value')),
      );
      expect(values, name).toEqual([
        ...[elements.worstRatio, elements.outside],
        ...[
          error.absolute.max,
          error.absolute.rms,
          ...(Number(error.ulps.max) > 100 ? [] : [error.ulps.max]),
        ],
        ...(lseOf(report) === null ? [] : [fromReported<number>(lseOf(report)!.max)]),
      ]);
      expect(textOf('dl.figures-of-merit')).toContain(formatNumber(error.absolute.max));
    }
  });

  test('says where in it the rest stands, the share of the bound, and commands that can be pasted', async () => {
    const report = judgedReport('O × 1.5');
    const document = parsed(await renderHtml(full));
    const command = document.querySelector('#reproduce pre')!.textContent!;
    expect(command).toMatch(/^npx flashproof audit/);
    const page = parsed(
      await renderHtml(pageOf({ ...report, verdict: { ...report.verdict, notes: ['a note'] } })),
    );
    const main = page.querySelector('main')!.textContent!;
    expect(main).toMatch(/more tests? fails?; the table of all tests below has them/);
    expect(main).not.toContain('--full');
    const shares = [...page.querySelectorAll('.figures-of-merit data')].map(
      (node) => node.textContent,
    );
    expect(shares[0]).toMatch(/^[\d.]+ [%×]$/);
    const note = [...page.querySelectorAll('header p')].find(
      (one) => one.textContent === 'Note: a note.',
    )!;
    expect(note.getAttribute('class') ?? '').toBe('');
  });

  test('gives every technique its bound, what was found and the share', async () => {
    const table = fromReported<TechniqueTable>(withTechniques.techniques!);
    const document = parsed(await renderHtml(full));
    const described = document.querySelector('#techniques svg desc')!.textContent!;
    for (const { technique, bound, measured } of table.techniques)
      expect(described).toContain(
        `${technique} ${formatNumber(measured!.max)} of ${formatNumber(bound.max)} (`,
      );
    const without = parsed(await renderHtml(pageOf(judgedReport('pass')))).querySelector(
      '#techniques',
    )!;
    expect(without.textContent).toContain('--no-techniques');
  });

  test('escapes every text, and ends no script early', async () => {
    const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'&\u202e\x1b\n]]>`;
    const report = judgedReport('one element off');
    const source = { ...report.inputs.outputs[0], path: hostile, tensor: hostile };
    const evil: JudgedReport = {
      ...report,
      tool: { name: 'flashproof', version: hostile },
      inputs: {
        problem: { ...report.inputs.problem, path: hostile },
        command: hostile,
        outputs: [source, { ...source, name: 'lse' }],
      },
      arithmetic: hostile,
      verdict: {
        pass: false,
        status: 'FAIL',
        judged: true,
        sentence: hostile,
        premise: null,
        notes: [hostile],
        untested: [{ test: 'bias', reason: hostile }],
        findings: [{ quantity: 'out', test: 'bias', isWorstCase: false, statement: hostile }],
        diagnosis: {
          ...report.verdict.diagnosis!,
          id: 'unscaled',
          sentence: hostile,
          evidence: [hostile],
        } as JudgedReport['verdict']['diagnosis'],
      },
      techniques: { ...withTechniques.techniques!, arithmetic: hostile, kernel: hostile },
    };
    const html = await renderHtml(
      pageOf(evil, {
        exp2: [{ ...exp2[0], name: hostile, use: hostile }],
        compared: [{ name: hostile, report: evil, plots: pooled, difference: null }],
        identification: hostile,
        commands: [{ purpose: hostile, words: ['flashproof', hostile] }],
      }),
    );
    expect(faults(html)).toEqual([]);
    expect(html.match(/<script/g)).toHaveLength(1);
    expect(html.match(/<\/script/g)).toHaveLength(1);
    expect(html.replace(/<script[^]*<\/script>/, '')).not.toMatch(/[\p{Cf}\x1b]/u);
    const document = parsed(html);
    expect(JSON.parse(document.querySelector('#report')!.textContent!)).toEqual(evil);
    expect(document.querySelector('#provenance')!.textContent).toContain(
      '<img src=x onerror=alert(1)>',
    );
  });

  inTurn('stays small for an output of [8, 4096, 128]', async () => {
    const shape = { heads: 8, queries: 4096, columns: 128 };
    const large = madeUpPlots(shape);
    // All heads in one map are as large as one head.
    const one = madeUpPlots({ ...shape, heads: 1 }, { maps: 0, cells: 6144 });
    const html = await renderHtml({
      ...full,
      plots: large,
      compared: ['a', 'b', 'c', 'd'].map((name) => ({
        name,
        report: withTechniques,
        plots: one,
        difference: null,
      })),
    });
    expect(html.length).toBeGreaterThan(1e5);
    expect(Buffer.byteLength(html)).toBeLessThan(2e6);
    expect(faults(html)).toEqual([]);
  });

  test('says what became of a kernel that gave no output', async () => {
    const html = await renderHtml(pageOf(executionFailure));
    const document = parsed(html);
    expect(document.querySelector('.fail')!.textContent).toContain('SIGSEGV');
    expect(document.querySelector('figure')).toBeNull();
  });
});

describe('commands of a page', () => {
  test('are what a shell reads as the words, a flag on one line with its value', () => {
    const words = [
      ...['node', '-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '--'],
      ...['--output', ":it's", '--set', 'a b=$HOME `x`', '--causal', '--scale=-1', '--html'],
      ...['x'.repeat(90), '--compare', '*'],
    ];
    const lines = commandLines(words);
    expect(lines.length).toBeGreaterThan(1);
    const { stdout } = spawnSync('sh', ['-c', lines.join('\n  ')], { encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual(words.slice(4));
    for (const line of lines) expect(line).not.toMatch(/--(set|output|html|compare) \\$/);
  });
});

describe('axes', () => {
  test('have the powers within them, and no more than asked for', () => {
    expect(decades(3e-7, 0.02)).toEqual([1e-6, 1e-5, 1e-4, 1e-3, 1e-2]);
    expect(decades(1e-300, 1e300, 5).length).toBeLessThanOrEqual(5);
    expect(decades(2, 3)).toEqual([]);
    expect([1e-12, 0.1, 1, 100, 1000].map(decadeLabel)).toEqual([
      '10⁻¹²',
      '10⁻¹',
      '1',
      '100',
      '10³',
    ]);
    expect([-12, -3, 0, 4, 11].map(octaveLabel)).toEqual(['2⁻¹²', '1/8', '1', '16', '2¹¹']);
  });

  test('reach around all that is positive and finite', () => {
    expect(decadeDomain([0, NaN, Infinity])).toEqual([0.1, 1]);
    expect(decadeDomain([3e-5, 0, 20])).toEqual([1e-5, 100]);
    expect(decadeDomain([1e-3])).toEqual([1e-3, 1e-2]);
    const [low, high] = decadeDomain([5e-324, 1.7e308]);
    expect(low).toBeGreaterThan(0);
    expect(high).toBeLessThan(Infinity);
  });
});

describe('the page of packed sequences', () => {
  const name = 'packed sequences, O and LSE with NaN and off';

  test('has a row for each of them, as the report has it', async () => {
    const report = judgedReport(name);
    const html = await renderHtml(pageOf(report));
    expect(faults(html)).toEqual([]);
    const rows = [...parsed(html).querySelectorAll('#sequences tbody tr')].map((row) =>
      [...row.querySelectorAll('th, td')].map(({ textContent }) => (textContent ?? '').trim()),
    );
    const sequences = report.sequences ?? [];
    expect(sequences.length).toBeGreaterThan(1);
    expect(rows.map(([title]) => title).toSorted()).toEqual(
      sequences.map(({ sequence }) => `sequence ${Number(sequence)}`),
    );
    for (const { sequence, queries, keys } of sequences)
      expect(rows).toContainEqual(
        expect.arrayContaining([`sequence ${Number(sequence)}`, String(queries), String(keys)]),
      );
    const used = sequences.map(({ worstRatio }) => Number(worstRatio));
    const first = sequences[used.indexOf(Math.max(...used))]!;
    expect(rows[0]![0]).toBe(`sequence ${Number(first.sequence)}`);
  });

  test('is the only one that has them', async () => {
    expect(
      parsed(await renderHtml(pageOf(judgedReport('pass')))).querySelector('#sequences'),
    ).toBeNull();
  });
});
