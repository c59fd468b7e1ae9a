import { rmSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordTimeline, timelineMutants } from '../../src/browser/index.js';
import { deadlockOf, endlessWaits } from '../../site/src/timeline/deadlock.js';
import { eventKinds, kindOf } from '../../site/src/timeline/kinds.js';
import { groupMistakes } from '../../site/src/timeline/mistake-groups.js';
import { buildPatience, buildSite, chromiumPath, hasChromium, serveFolder } from './serve-site.js';

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

describe('the words of the timeline', () => {
  const stuck = 'remove: O staged: correction arrives';

  it('has a colour for every action of a run, and each colour is of some', async () => {
    const { events } = await recordTimeline(request);
    const found = new Set(events.map(kindOf));
    expect([...found].map(({ name }) => name).sort()).toEqual(
      eventKinds.map(({ name }) => name).sort(),
    );
    expect(new Set(eventKinds.map(({ color }) => color)).size).toBe(eventKinds.length);
    for (const event of events) expect(kindOf(event).name === 'waits').toBe(event.isWait);
    const isMultiplied = events.filter(({ name }) => name === 'S: multiplied');
    for (const event of isMultiplied) expect(kindOf(event).name).toBe('MMA');
  });

  it('lists a deadlock by what is awaited, with every warp once', async () => {
    const { findings, isComplete } = await recordTimeline({ ...request, keys: 128, mutant: stuck });
    expect(isComplete).toBe(false);
    const waits = findings.map(deadlockOf).find((found) => found !== null)!;
    expect(waits.length).toBeLessThan(6);
    expect(waits).toContainEqual({
      who: 'warps 8 to 11 (correction)',
      site: 'O stored: correction waits at its end',
      awaited: expect.stringMatching(/^parity 0 of O stored 1, .* 0 of 32 arrivals$/),
    });
    const message = findings.find((finding) => finding.startsWith('deadlock'))!;
    const warps = [...message.matchAll(/CTA \d+ warp (\d+) \([^)]*\) at/g)].length;
    const listed = waits.map(({ who }) => {
      const [first, last = first] = /(\d+)(?: to (\d+))?/.exec(who)!.slice(1).filter(Boolean);
      return Number(last) - Number(first) + 1;
    });
    expect(listed.reduce((sum, count) => sum + count, 0)).toBe(warps);
    // Each of them waits from what it did last on, for ever.
    const timeline = await recordTimeline({ ...request, keys: 128, mutant: stuck });
    const endless = endlessWaits(timeline);
    expect(endless.length).toBe(warps);
    for (const { track, start, end, name } of endless) {
      const own = timeline.events.filter((event) => event.track === track);
      expect(start).toBe(Math.max(0, ...own.map((event) => event.end)));
      expect(end).toBeGreaterThan(timeline.clocks);
      expect(waits.map(({ site }) => site)).toContain(name);
    }
    expect(endlessWaits(await recordTimeline(request))).toEqual([]);
    expect(deadlockOf('race: CTA 0 warp 1')).toBeNull();
    // Nor who has come, of a pair either.
    const pair = await recordTimeline({
      ...request,
      ctas: 2,
      mutant: 'other CTA alone: S full: MMA commits',
    });
    const ofPair = pair.findings.map(deadlockOf).find((found) => found !== null)!;
    expect(ofPair.some(({ awaited }) => / of 512 arrivals$/.test(awaited))).toBe(true);
    for (const { awaited } of ofPair) expect(awaited).not.toMatch(/CTA \d/);
  });

  it('groups every mistake by what it does', async () => {
    const mutants = await timelineMutants();
    const groups = groupMistakes(mutants);
    expect(new Set([...groups.values()].flat())).toEqual(new Set(mutants));
    expect([...groups.keys()]).toEqual(expect.arrayContaining(['remove', 'late', 'flip parity']));
    for (const [kind, members] of groups)
      for (const { id } of members) expect(id.startsWith(`${kind}: `)).toBe(true);
  });

  it('calls a mistake by what goes wrong, which no event of the right program is called', async () => {
    const { events } = await recordTimeline(request);
    const right = new Set(events.map(({ name }) => name));
    for (const { description } of await timelineMutants())
      expect(right.has(description)).toBe(false);
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
  }, buildPatience);
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
    expect(await page.locator('#clock-value').innerText()).toBe(`${next} of ${clocks}`);
    expect(await page.locator('#view-value').innerText()).toBe(`all ${clocks}`);
    expect(await page.inputValue('#view')).toBe(await page.getAttribute('#view', 'max'));
    await page.locator('#view').fill('5');
    expect(Number(await page.locator('#view-value').innerText())).toBeCloseTo(clocks / 2, -1);
    expect(await page.locator('#legend li').allInnerTexts()).toEqual(
      eventKinds.map(({ name }) => name),
    );
    await page.fill('#search', 'REMOVE staged correction');
    const offered = await page.locator('#mutant optgroup option').allInnerTexts();
    expect(offered).toEqual(['"O staged: correction arrives" is left out']);
    await page.selectOption('#mutant', 'remove: O staged: correction arrives');
    await page.click('button.main');
    await page.waitForSelector('#findings li');
    expect(await page.locator('#findings').innerText()).toContain(
      'warps 8 to 11 (correction) for parity 0 of O stored 1',
    );
    expect(await page.locator('#mistake').innerText()).toContain(
      '--mutant "remove: O staged: correction arrives"',
    );
    // The lanes are as wide as the page, and a place in one is a clock.
    const lane = (await page.locator('.lane svg').first().boundingBox())!;
    const main = (await page.locator('main').boundingBox())!;
    expect(lane.x + lane.width).toBeCloseTo(main.x + main.width, 0);
    await page.locator('#view').fill('6');
    const middle = { x: lane.width / 2, y: lane.height / 2 };
    await page.locator('.lane svg').first().click({ position: middle });
    const length = Number(await page.getAttribute('#clock', 'max'));
    expect(Number(await page.inputValue('#clock')) / length).toBeCloseTo(0.5, 1);
    await page.locator('#clock').fill(String(length));
    const stopped = page.locator('#now tr:has(th:text-is("warp 8 (correction)")) td');
    expect(await stopped.first().innerText()).toBe('O stored: correction waits at its end');
    expect(await stopped.last().innerText()).toBe('never');
    await page.setViewportSize({ width: 360, height: 700 });
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect(wide).toBeLessThanOrEqual(360);
    // On a phone a lane has the whole width, and its name above it in letters that can be read.
    const narrow = (await page.locator('.lane svg').first().boundingBox())!;
    expect(narrow.width).toBeGreaterThan(320);
    const name = page.locator('.lane:has(svg) div').first();
    expect((await name.boundingBox())!.y).toBeLessThan(narrow.y);
    const letters = await page.evaluate<string>(
      `getComputedStyle(document.querySelector('.lane div')).fontSize`,
    );
    expect(parseFloat(letters)).toBeGreaterThanOrEqual(12);
    expect(errors).toEqual([]);
  });
});
