import { runInProcess } from '../cli/run-in-process.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe from 'axe-core';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildPatience, buildSite, chromiumPath, hasChromium, serveFolder } from './serve-site.js';

/** In milliseconds. */
const patience = 180_000;
const fixture = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';

/** Brings a page to the state in which a person reads it. */
type Prepare = (page: Page) => Promise<unknown>;

async function giveFixture(page: Page): Promise<void> {
  await page.setInputFiles('#files', fixture);
  await page.waitForSelector('#report:not([hidden])', { timeout: patience });
  await page.click('#options summary');
  await page.selectOption('#output', ':torch_flash.out');
}

async function judge(page: Page): Promise<void> {
  await giveFixture(page);
  await page.click('#run');
  await page.waitForSelector('#report:not([hidden])', { timeout: patience });
}

const laboratoryDone = '#state:has-text("Techniques and bounds")';
const pages: readonly (readonly [name: string, prepare: Prepare])[] = [
  ['index.html', () => Promise.resolve()],
  ['audit.html', judge],
  ['laboratory.html', (page) => page.waitForSelector(laboratoryDone, { timeout: patience })],
  ['timeline.html', (page) => page.waitForSelector('#findings .verdict', { timeout: patience })],
  ['certificate.html', () => Promise.resolve()],
];

interface Finding {
  readonly rule: string;
  readonly where: readonly string[];
}

/** What axe finds wrong with a page, and the contrasts that it cannot tell, which it never can of texts in pictures. */
async function findings(page: Page): Promise<readonly Finding[]> {
  // Shades at the edges of what scrolls lie behind its texts, of which axe cannot tell the colour; what is under them it can.
  await page.evaluate(
    "for (const box of document.querySelectorAll('.table, pre')) box.style.backgroundImage = 'none'",
  );
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>(
    'axe.run(document, { iframes: false })',
  );
  const { incomplete } = await page.evaluate<axe.AxeResults>(
    'axe.run({ exclude: [["svg"]] }, { iframes: false, runOnly: ["color-contrast"] })',
  );
  return [...violations, ...incomplete].map(({ id, nodes }) => ({
    rule: id,
    where: nodes.map(({ html, failureSummary }) => `${html}: ${failureSummary}`),
  }));
}

describe.runIf(hasChromium())('the pages for everybody', { timeout: patience }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'flashproof-everybody-'));
  let browser: Browser;
  let page: Page;
  let folder = '';
  let address = '';
  let close = () => {};

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

  async function open(name: string, colorScheme: 'light' | 'dark' = 'light'): Promise<void> {
    await page?.context().close();
    page = await (await browser.newContext({ colorScheme })).newPage();
    page.setDefaultTimeout(patience);
    await page.goto(`${address}${name}`);
  }

  /** Presses Tab until an element has the focus, every stop of which is seen. */
  async function tabTo(selector: string): Promise<void> {
    for (let stop = 0; stop < 40; stop++) {
      await page.keyboard.press('Tab');
      const [isThere, isSeen] = await page.evaluate<[boolean, boolean]>(
        `(({ activeElement: at }) => at === document.body ? [false, true]
          : [at.matches(${JSON.stringify(selector)}), getComputedStyle(at).outlineStyle !== 'none'])(document)`,
      );
      expect(isSeen, `focus before ${selector}`).toBe(true);
      if (isThere) return;
    }
    throw new Error(`Tab does not lead to ${selector}`);
  }

  /** The live regions of the page that the tree of a screen reader has, by their texts. */
  async function liveTexts(): Promise<string[]> {
    return page.evaluate<string[]>(
      `[...document.querySelectorAll('[role=status], [role=alert], [aria-live]')]
        .filter((region) => region.checkVisibility()).map(({ innerText }) => innerText)`,
    );
  }

  describe.each(['light', 'dark'] as const)('in the %s scheme', (scheme) => {
    it.each(pages)('%s has nothing that axe finds, at 360 pixels too', async (name, prepare) => {
      await open(name, scheme);
      await prepare(page);
      const ground = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      const [red] = /\d+/.exec(ground)!;
      expect(Number(red) < 128).toBe(scheme === 'dark');
      expect(await findings(page)).toEqual([]);
      await page.setViewportSize({ width: 360, height: 700 });
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
      expect(wide).toBeLessThanOrEqual(360);
      // A program is broken into lines, not cut.
      const cut = await page.$$eval('pre', (found) =>
        found.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
      );
      expect(cut).toEqual([]);
    });

    it('has nothing that axe finds in the report of an audit', async () => {
      await open('audit.html', scheme);
      await judge(page);
      const saving = page.waitForEvent('download');
      await page.click('#saveHtml');
      const path = join(scratch, `${scheme}.html`);
      await (await saving).saveAs(path);
      await page.goto(`file://${path}`);
      expect(await findings(page)).toEqual([]);
      await page.setViewportSize({ width: 360, height: 700 });
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
      expect(wide).toBeLessThanOrEqual(360);
    });
  });

  it.each(['light', 'dark'] as const)(
    'has nothing that axe finds in a certificate, in the %s scheme',
    async (scheme) => {
      const path = join(scratch, 'certificate.html');
      const launch = 'examples/triton/recorded/sm_100-lines/launch.json';
      const { status } = await runInProcess('certify', launch, '--html', path, '--quiet');
      expect(status).toBe(0);
      await open('certificate.html', scheme);
      await page.goto(`file://${path}`);
      expect(await findings(page)).toEqual([]);
      await page.setViewportSize({ width: 360, height: 700 });
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
      expect(wide).toBeLessThanOrEqual(360);
    },
  );

  it('finds a text that cannot be read and a field without a name', async () => {
    await open('laboratory.html', 'dark');
    await page.waitForSelector(laboratoryDone);
    await page.evaluate(
      `document.documentElement.style.setProperty('--muted', '#555d66');
       document.querySelector('#main').append(document.createElement('select')); null`,
    );
    const rules = (await findings(page)).map(({ rule }) => rule);
    expect(rules).toEqual(expect.arrayContaining(['color-contrast', 'select-name']));
  });

  it.each([
    ['audit.html', '#outcome', '.verdict'],
    ['laboratory.html', '#refused', '*'],
    ['timeline.html', '#findings', '.verdict'],
  ])('%s says its verdict in a region that was live before', async (name, region) => {
    await open(name);
    // A region that comes with its text is not announced.
    const live = await page.$eval(region, (found) => [
      found.getAttribute('aria-live') ?? found.getAttribute('role'),
      found.closest('[hidden]') === null,
    ]);
    expect(live).toEqual([expect.stringMatching(/^(polite|status|alert)$/), true]);
  });

  it('is judged by keys alone, and the verdict is announced', async () => {
    await open('audit.html');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.className')).toBe('skip');
    await page.keyboard.press('Enter');
    // Asked for before Tab is pressed, since the browser takes a while to hand choosers over.
    const choosing = page.waitForEvent('filechooser');
    await tabTo('#files');
    await page.keyboard.press('Enter');
    await (await choosing).setFiles(fixture);
    await page.waitForSelector('#report:not([hidden])');
    expect((await liveTexts()).join()).toMatch(/12-tiny\S*: \d+ tensors/);
    await tabTo('#options summary');
    await page.keyboard.press('Enter');
    await tabTo('#output');
    await page.keyboard.type(':torch_flash.out');
    expect(await page.inputValue('#output')).toBe(':torch_flash.out');
    await tabTo('#run');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#report:not([hidden])');
    expect((await liveTexts()).join()).toContain('PASS');
    await tabTo('#saveJson');
    const saving = page.waitForEvent('download');
    await page.keyboard.press('Enter');
    expect((await saving).suggestedFilename()).toBe('report.json');
  });

  it('moves every knob of the laboratory by keys alone, and says what came of it', async () => {
    await open('laboratory.html');
    await page.waitForSelector(laboratoryDone);
    for (const knob of ['degree', 'share', 'threshold', 'spread', 'format', 'output', 'seed']) {
      await tabTo(`[name=${knob}]`);
      // The seed stands at its lowest.
      await page.keyboard.press(knob === 'seed' ? 'ArrowUp' : 'ArrowDown');
      await expect.poll(() => page.url(), { timeout: patience }).toContain(`${knob}=`);
    }
    // What the last knob changed may still be on its way.
    await expect
      .poll(async () => (await liveTexts()).join(), { timeout: patience })
      .toMatch(/Largest error .* Techniques and bounds/s);
  });
});
