import { rmSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordTimeline, timelineMutants } from '../../src/browser/index.js';
import { buildSite, chromiumPath, hasChromium, serveFolder } from './serve-site.js';

/** In milliseconds. */
const patience = 120_000;
const request = { queries: 256, keys: 384, dim: 64, ctas: 1, mutant: null } as const;

describe('recordTimeline', () => {
  it('has no warp in two places at once, and all events within the run', async () => {
    const { tracks, events, clocks, isComplete, findings } = await recordTimeline(request);
    expect(isComplete).toBe(true);
    expect(findings).toEqual([]);
    for (const { id } of tracks.filter(({ isWarp }) => isWarp)) {
      const own = events.filter(({ track }) => track === id).sort((a, b) => a.start - b.start);
      expect(own.length).toBeGreaterThan(0);
      for (const [i, { start, end }] of own.entries()) {
        expect(end).toBeGreaterThanOrEqual(start);
        expect(end).toBeLessThanOrEqual(clocks);
        if (i > 0) expect(start).toBeGreaterThanOrEqual(own[i - 1].end);
      }
    }
  });

  it('finds a mistake that it is given, and refuses one that there is not', async () => {
    let found = false;
    for (const { id } of await timelineMutants()) {
      found = (await recordTimeline({ ...request, keys: 128, mutant: id })).findings.length > 0;
      if (found) break;
    }
    expect(found).toBe(true);
    await expect(recordTimeline({ ...request, mutant: 'x' })).rejects.toThrow('no mutant "x"');
  });
});

describe.runIf(hasChromium())('the timeline in Chromium', { timeout: patience }, () => {
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
  }, patience);
  afterAll(async () => {
    await browser?.close();
    close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('steps through the run, and says what each warp waits for', async () => {
    await page.goto(`${address}timeline.html`);
    await page.waitForSelector('#picture svg', { timeout: patience });
    const { events, clocks, tracks } = await recordTimeline(request);
    expect(await page.locator('#state').innerText()).toContain(`${clocks} clocks`);
    const mma = tracks.find(({ name }) => name.includes('(MMA)') || name.includes('MMA'))!;
    const wait = events.find(
      ({ track, isWait, start, end }) => track === mma.id && isWait && end - start > 50,
    )!;
    await page.locator('#clock').fill(String(wait.start));
    const row = page.locator(`#now tr:has(th:text-is("${mma.name}")) td`);
    expect(await row.first().innerText()).toBe(wait.name);
    await page.focus('#next');
    await page.keyboard.press('Enter');
    const next = Math.min(
      ...events.flatMap(({ start, end }) => [start, end]).filter((time) => time > wait.start),
    );
    expect(await page.locator('#now-heading').innerText()).toBe(`At clock ${next}`);
    await page.setViewportSize({ width: 360, height: 700 });
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect(wide).toBeLessThanOrEqual(360);
    expect(errors).toEqual([]);
  });
});
