import { rmSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf, knobs, requestOf, valuesOf } from '../../site/src/laboratory/knobs.js';
import { createLaboratory } from '../../src/browser/index.js';
import { buildPatience, buildSite, chromiumPath, hasChromium, serveFolder } from './serve-site.js';

/** In milliseconds. */
const patience = 120_000;

describe('the knobs of the laboratory', () => {
  it('stand as an address says, where they can', () => {
    const moved = { ...valuesOf(''), degree: '5', format: 'fp16', spread: '2.5' };
    expect(valuesOf(addressOf(moved))).toEqual(moved);
    expect(addressOf(valuesOf(''))).toBe('#');
    expect(valuesOf('#degree=9&format=<b>&spread=x&threshold=&other=1')).toEqual(valuesOf(''));
  });

  it('are settings that the model takes, at both ends', () => {
    const runExperiment = createLaboratory();
    for (const knob of knobs)
      for (const value of 'choices' in knob ? knob.choices : [knob.low, knob.high]) {
        const request = requestOf({ ...valuesOf(''), [knob.name]: String(value) });
        const small = { ...request, queries: 16, keys: 64 };
        const { outputs, measureTechniques } = runExperiment(small);
        expect(outputs.largestError).toBeGreaterThan(0);
        const { total } = measureTechniques();
        // Every emulated output stays within its bound, whatever the knobs say.
        expect(total.measured!.used, `${knob.name}=${value}`).toBeLessThanOrEqual(1);
      }
  });
});

describe.runIf(hasChromium())('the laboratory in Chromium', { timeout: patience }, () => {
  let browser: Browser;
  let page: Page;
  let folder = '';
  let address = '';
  let close = () => {};
  const errors: string[] = [];

  beforeAll(async () => {
    folder = await buildSite();
    ({ address, close } = await serveFolder(folder));
    browser = await chromium.launch({
      executablePath: chromiumPath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    });
    page = await browser.newPage();
    page.on('pageerror', (error) => errors.push(String(error)));
  }, buildPatience);
  afterAll(async () => {
    await browser?.close();
    close();
    rmSync(folder, { recursive: true, force: true });
  });

  const row = (name: string) => page.locator(`#techniques tr:has(th:text-is("${name}")) td`);
  const settled = () => page.waitForSelector('#state:has-text("Techniques and bounds")');

  it('shows the numbers of the library, follows a knob, and keeps it in the address', async () => {
    await page.goto(`${address}laboratory.html#degree=2`);
    await settled();
    const request = requestOf(valuesOf('#degree=2'));
    const { techniques } = createLaboratory()(request).measureTechniques();
    const { bound, measured } = techniques.find(
      ({ technique }) => technique === 'exp2-polynomial',
    )!;
    const [largest, , most] = await row('exp2-polynomial').allInnerTexts();
    expect(Number(largest)).toBe(Number(measured!.max.toPrecision(3)));
    expect(Number(most)).toBe(Number(bound.max.toPrecision(3)));
    await page.focus('input[name=degree]');
    await page.keyboard.press('ArrowRight');
    await expect
      .poll(async () => (await row('exp2-polynomial').allInnerTexts())[0], { timeout: patience })
      .not.toBe(largest);
    const [less] = await row('exp2-polynomial').allInnerTexts();
    expect(Number(less)).toBeLessThan(Number(largest));
    // Degree 3 is where the knob stands initially.
    expect(page.url()).toBe(`${address}laboratory.html#`);
    expect(await page.locator('#histogram svg').getAttribute('aria-label')).toContain(
      '16384 elements',
    );
    const words = await page.locator('#histogram svg text').allTextContents();
    expect(words).toEqual(expect.arrayContaining(['elements', '0', '1/4']));
    expect(words.join()).toMatch(/\|error\| in ulps/);
    expect(await page.locator('#scale').innerText()).toMatch(
      /^output units, 1e-\d+ to 1e-\d+, logarithmic$/,
    );
    // An error's bar is no longer than its bound's.
    const bars = await page.$$eval('#techniques .bars', (cells) =>
      cells.map((cell) => [...cell.children].map((bar) => bar.getBoundingClientRect().width)),
    );
    expect(bars.length).toBeGreaterThan(5);
    for (const [allowed, found] of bars) expect(found).toBeLessThanOrEqual(allowed);
    expect(errors).toEqual([]);
  });
});
