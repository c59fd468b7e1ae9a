import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unpack } from '../../fixtures/gradients/unpack.mjs';
import { refusal, runInProcess } from '../cli/run-in-process.js';
import { described, safetensorsBytes } from '../io/safetensors-bytes.js';
import { buildPatience, buildSite, chromiumPath, hasChromium, serveFolder } from './serve-site.js';

const fixture = 'fixtures/attention/09-normal-200x300-d64-bf16.safetensors';

/**
 * A document with its numbers in twelve digits: statistics sum what Math.exp and Math.log2 give, whose last bit differs
 * between releases of V8. A threshold of the dispersion counts weights in cells of their logarithms, of which such a bit
 * moves one to the next: those are compared in four digits.
 */
function rounded(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, member: unknown) =>
    typeof member === 'number' ? Number(member.toPrecision(key === 'threshold' ? 4 : 12)) : member,
  );
}

/** Whether the page's bar has moved; it runs there. */
function hasProgress(): boolean {
  type Bar = { readonly document: { querySelector(name: string): { readonly value: number } } };
  return (globalThis as unknown as Bar).document.querySelector('progress').value > 0;
}

/** Building and a browser's start take their time. In milliseconds. */
const patience = 120_000;

describe.runIf(hasChromium())('the audit page in Chromium', { timeout: patience }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'flashproof-page-'));
  let browser: Browser;
  let page: Page;
  let folder = '';
  let address = '';
  let close = () => {};
  const errors: string[] = [];
  const asked: string[] = [];

  beforeAll(async () => {
    folder = await buildSite();
    ({ address, close } = await serveFolder(folder));
    browser = await chromium.launch({
      executablePath: chromiumPath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    });
  }, buildPatience);
  afterAll(async () => {
    await browser?.close();
    close();
    rmSync(folder, { recursive: true, force: true });
    rmSync(scratch, { recursive: true, force: true });
  });

  /** Opens the page anew, and gives it files. */
  async function give(...files: string[]): Promise<void> {
    await page?.context().close();
    const context = await browser.newContext();
    page = await context.newPage();
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    page.on('pageerror', (error) => errors.push(String(error)));
    context.on('request', (request) => asked.push(request.url()));
    await page.goto(`${address}audit.html`);
    await page.setInputFiles('#files', files);
  }

  /** Opens an example anew, and waits for its verdict. */
  async function open(id: string, width = 1280, height = 800): Promise<string> {
    await page?.context().close();
    const context = await browser.newContext({ viewport: { width, height } });
    page = await context.newPage();
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.goto(`${address}audit.html#example=${id}`);
    await page.waitForSelector('#outcome .verdict', { timeout: patience });
    return page.locator('#outcome .verdict').innerText();
  }

  /** Where the verdict ends, of the height of the window, without scrolling. */
  async function verdictEnd(): Promise<number> {
    expect(await page.evaluate('scrollY')).toBe(0);
    const { y, height } = (await page.locator('#outcome .verdict').boundingBox())!;
    return y + height;
  }

  /** Chooses an output and its LSE, and waits for what becomes of the audit. */
  async function judge(workers: number, output: string, lse: string): Promise<string> {
    await page.waitForSelector('#options:not([hidden])');
    await page.click('#options summary');
    await page.selectOption('#output', output);
    await page.selectOption('#lse', lse);
    await page.fill('#threads', String(workers));
    await page.click('#run');
    await page.waitForSelector('#outcome .verdict', { timeout: patience });
    return page.locator('#outcome .verdict').innerText();
  }

  it.each([1, 2])(
    'gives the verdict and the numbers of the command line, on %i workers',
    async (workers) => {
      await give(fixture);
      const said = await judge(workers, ':torch_cudnn.out', ':torch_cudnn.lse');
      const words = ['audit', fixture, '--output', ':torch_cudnn.out', '--lse', ':torch_cudnn.lse'];
      const { stdout } = await runInProcess(...words, '--threads', '1', '--json', '-');
      const expected = JSON.parse(stdout);
      expect(said).toContain(expected.verdict.sentence);
      const saving = page.waitForEvent('download');
      await page.click('#saveJson');
      const made = JSON.parse(readFileSync(await (await saving).path(), 'utf8'));
      for (const part of ['verdict', 'outputs', 'techniques', 'oracle', 'problem'])
        expect(rounded(made[part]), part).toEqual(rounded(expected[part]));
      expect(made.inputs.problem.sha256).toBe(expected.inputs.problem.sha256);
      const report = page.frameLocator('#frame');
      expect(await report.locator('#verdict').innerText()).toContain('PASS');
      expect(await report.locator('#elements svg').count()).toBeGreaterThan(0);
    },
  );

  it('judges the gradients that lie beside the output that is chosen', async () => {
    const path = join(scratch, 'gradients.safetensors');
    writeFileSync(path, unpack(readFileSync('fixtures/gradients/plain-fp32.safetensors.br')));
    await give(path);
    const said = await judge(2, ':torch_math.out', '');
    const words = ['out', 'dq', 'dk', 'dv'].flatMap((name) => [
      name === 'out' ? '--output' : `--${name}`,
      `:torch_math.${name}`,
    ]);
    const { stdout } = await runInProcess('audit', path, ...words, '--threads', '1', '--json', '-');
    expect(said).toContain(JSON.parse(stdout).verdict.sentence);
    const report = page.frameLocator('#frame');
    expect(await report.locator('#gradients').innerText()).toContain('dQ');
    expect(errors).toEqual([]);
  });

  it.each([
    ['cudnn', 'PASS: the output and the LSE stay within'],
    ['one-key-too-many', 'FAIL: the causal limit is one key too far'],
    ['no-tail-mask', 'FAIL: 84 keys of zeros past the last one'],
    ['gradients', 'dQ, dK and dV stay within what rounding explains'],
    ['splits', 'PASS: the output and the LSE stay within'],
  ])('judges the example %s as the command line does, in view on a phone', async (id, said) => {
    const verdict = await open(id, 390, 844);
    expect(verdict).toContain(said);
    expect(await verdictEnd()).toBeLessThanOrEqual(844);
    const path = join(folder, `examples/${id}.safetensors`);
    const { stdout } = await runInProcess('audit', path, '--threads', '1', '--json', '-');
    expect(verdict).toContain(JSON.parse(stdout).verdict.sentence);
    const merge = page.frameLocator('#frame').getByText('merge', { exact: true });
    expect((await merge.count()) > 0, 'parts are judged').toBe(id === 'splits');
    expect(errors).toEqual([]);
  });

  it('offers every example by a link, and has the verdict in view at 1280 × 800', async () => {
    await open('cudnn');
    expect(await verdictEnd()).toBeLessThanOrEqual(800);
    const links = await page.$$eval('#examples a', (found) =>
      found.map((link) => link.getAttribute('href')!.split('=')[1]),
    );
    expect(links.map((id) => `${id}.safetensors`).sort()).toEqual(
      readdirSync(join(folder, 'examples')).sort(),
    );
    await page.click(`#examples a[href="#example=no-tail-mask"]`);
    await page.waitForSelector('#outcome .fail', { timeout: patience });
    expect(await verdictEnd()).toBeLessThanOrEqual(800);
    // The report is a part of the page, without a scroll bar of its own.
    const [shown, whole] = await page.evaluate<[number, number]>(
      '(({ clientHeight, contentDocument }) => [clientHeight, contentDocument.documentElement.scrollHeight])(document.querySelector("#frame"))',
    );
    expect(whole).toBeLessThanOrEqual(shown);
  });

  it('starts at once with what is dropped, options folded, and says what it judged', async () => {
    await give();
    const bytes = [...readFileSync(fixture)];
    await page.evaluate((content) => {
      // The page's own types, which tests do not have.
      const { DataTransfer, File, DragEvent, document } = globalThis as unknown as {
        readonly [name in 'DataTransfer' | 'File' | 'DragEvent']: new (...words: unknown[]) => {
          readonly items: { add(file: unknown): void };
        };
      } & { readonly document: { body: { dispatchEvent(event: unknown): void } } };
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([new Uint8Array(content)], 'dropped.safetensors'));
      const dropped = { dataTransfer, bubbles: true, cancelable: true };
      document.body.dispatchEvent(new DragEvent('drop', dropped));
    }, bytes);
    await page.waitForSelector('#outcome .pass', { timeout: patience });
    const said = await page.locator('#outcome').innerText();
    const output = await page.inputValue('#output');
    expect(said).toContain(`Judged: ${output}`);
    expect(await page.getAttribute('#options', 'open')).toBeNull();
    const others = await page.locator('#alternatives button').allInnerTexts();
    expect(others).toHaveLength(5);
    expect(others).not.toContain(output);
    await page.click('#alternatives button');
    await page.waitForSelector(`#outcome :text("Judged: ${others[0]}")`, { timeout: patience });
  });

  /** A dump whose tensors have other names: those of a fixture, as another file. */
  function renamedDump(names: Readonly<Record<string, string>>): string {
    const bytes = readFileSync(fixture);
    const start = 8 + Number(bytes.readBigUInt64LE());
    const header = JSON.parse(bytes.toString('utf8', 8, start));
    const renamed = Object.entries(header).map(([own, tensor]) => [names[own] ?? own, tensor]);
    const text = JSON.stringify(Object.fromEntries(renamed));
    const padded = Buffer.from(text.padEnd(8 * Math.ceil(text.length / 8)));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(padded.length));
    const path = join(scratch, 'renamed.safetensors');
    writeFileSync(path, Buffer.concat([length, padded, bytes.subarray(start)]));
    return path;
  }

  it('offers what tensors of other names are, and judges them as the command line does', async () => {
    const names = {
      q: 'query',
      k: 'key',
      v: 'value',
      'torch_cudnn.out': 'attn_output',
      'torch_cudnn.lse': 'softmax_lse',
    };
    const path = renamedDump(names);
    await give(path);
    const note = await page.locator('#outcome .note').innerText();
    expect(note).toContain('Read query as q, key as k, value as v, attn_output as O?');
    const chosen = await Promise.all(
      ['q', 'k', 'v', 'output', 'lse'].map((id) => page.inputValue(`#${id}`)),
    );
    expect(chosen).toEqual([':query', ':key', ':value', ':attn_output', ':softmax_lse']);
    await page.click('#outcome button');
    await page.waitForSelector('#outcome .pass', { timeout: patience });
    const command = await page.locator('#command').innerText();
    const [, , ...words] = command.replace('renamed.safetensors', path).split(' ');
    const { stdout } = await runInProcess(...words, '--threads', '1', '--json', '-');
    expect(command).toContain(
      '--tensor q=:query --tensor k=:key --tensor v=:value --output :attn_output',
    );
    expect(await page.locator('#outcome').innerText()).toContain(
      JSON.parse(stdout).verdict.sentence,
    );
    expect(await page.frameLocator('#frame').locator('#reproduce').innerText()).toContain(
      '--tensor q=:query',
    );
    // Without them it is refused as the command line refuses it.
    await page.evaluate(
      "for (const id of ['q', 'k', 'v', 'lse']) document.getElementById(id).value = ''",
    );
    await page.click('#run');
    await page.waitForSelector('#outcome .refused', { timeout: patience });
    const line = await refusal('audit', path, '--output', ':attn_output');
    expect(await page.locator('#outcome .refused').innerText()).toBe(
      line.replaceAll(path, 'renamed.safetensors'),
    );
  });

  it('keeps the hint to choose others, has each example to save, and no full bar while it works', async () => {
    await open('splits');
    expect(await page.isVisible('.drop label')).toBe(true);
    const saving = page.waitForEvent('download');
    await page.click('#about a');
    expect(readFileSync(await (await saving).path())).toEqual(
      readFileSync(join(folder, 'examples/splits.safetensors')),
    );
    await page.evaluate(
      "globalThis.places = []; new MutationObserver(() => places.push(document.querySelector('progress').position)).observe(document.querySelector('progress'), { attributes: true })",
    );
    await page.click('#options summary');
    await page.click('#run');
    await page.waitForSelector('#running', { state: 'visible' });
    await page.waitForSelector('#outcome .verdict', { timeout: patience });
    const places = await page.evaluate<number[]>('places');
    expect(places.length).toBeGreaterThan(0);
    expect(Math.max(...places)).toBeLessThan(1);
  });

  it('asks nothing of any other place, and nothing of any place once it was opened', async () => {
    await give(fixture);
    await page.evaluate('navigator.serviceWorker.ready.then(() => null)');
    await page.context().setOffline(true);
    await page.reload();
    await page.setInputFiles('#files', fixture);
    expect(await judge(2, ':torch_cudnn.out', '')).toContain('PASS');
    expect(asked.filter((url) => !url.startsWith(address) && !url.startsWith('blob:'))).toEqual([]);
  });

  it.each<[string, Uint8Array]>([
    ['nothing.npz', new Uint8Array(0)],
    ['text.safetensors', new TextEncoder().encode('hello, world')],
    ['short.safetensors', safetensorsBytes({ q: described('F32', [4], 0, 16) }, new Uint8Array(3))],
  ])('refuses %s with the line of the command line', async (name, content) => {
    const path = join(scratch, name);
    writeFileSync(path, content);
    await give(path);
    const said = await page.locator('#outcome .refused').innerText();
    expect(said).toBe((await refusal('audit', path)).replaceAll(path, name));
    expect(await page.isHidden('#options')).toBe(true);
  });

  it('stays alive with 200 MB, and can be stopped', async () => {
    const path = join(scratch, 'large.safetensors');
    const [heads, rows, dim] = [100, 4096, 64];
    const bytes = 2 * heads * rows * dim;
    const header = Object.fromEntries(
      ['q', 'k', 'v', 'out'].map((name, i) => [
        name,
        described('BF16', [1, heads, rows, dim], i * bytes, (i + 1) * bytes),
      ]),
    );
    const start = safetensorsBytes(header);
    const file = openSync(path, 'w');
    writeSync(file, start);
    ftruncateSync(file, start.length + 4 * bytes);
    closeSync(file);
    await give();
    await page.evaluate(() => {
      const seen = { last: performance.now(), longest: 0 };
      Object.assign(globalThis, { seen });
      setInterval(() => {
        const now = performance.now();
        seen.longest = Math.max(seen.longest, now - seen.last);
        seen.last = now;
      }, 10);
    });
    await page.setInputFiles('#files', path);
    await page.waitForFunction(hasProgress, null, {
      timeout: patience,
    });
    await page.click('#cancel');
    expect(await page.locator('#outcome').innerText()).toContain('Cancelled');
    const longest = await page.evaluate(
      () => (globalThis as unknown as { seen: { longest: number } }).seen.longest,
    );
    // A page that reads in its own thread stands for seconds.
    expect(longest).toBeLessThan(1000);
    expect(await page.isVisible('#running')).toBe(false);
  });

  it('has a name for every field, fits a phone, and made no mistakes', async () => {
    await give(fixture);
    await page.waitForSelector('#outcome .verdict');
    await page.click('#options summary');
    const nameless = await page.$$eval('input, select, button, iframe', (fields) =>
      fields
        .filter((field) => {
          const labels = 'labels' in field ? (field.labels as ArrayLike<unknown> | null) : null;
          const text = field.textContent ?? '';
          return !labels?.length && field.tagName !== 'IFRAME' && text.trim() === '';
        })
        .map(({ id }) => id),
    );
    expect(nameless).toEqual([]);
    await page.setViewportSize({ width: 360, height: 700 });
    const [wide, view] = await page.evaluate<[number, number]>(
      '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
    );
    expect(wide).toBeLessThanOrEqual(view);
    expect(errors).toEqual([]);
  });
});
