import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath, hasChromium, serveFolder } from './serve-site.js';

/** TypeDoc reads the whole library. In milliseconds. */
const patience = 300_000;

/** Documents as site/typedoc.json lists them, by their addresses. */
function documentNames(): string[] {
  const { projectDocuments } = JSON.parse(readFileSync('site/typedoc.json', 'utf8')) as {
    readonly projectDocuments: readonly string[];
  };
  return projectDocuments.map((path) => path.replace('../docs/', '').replace(/\.md$/, ''));
}

describe.runIf(hasChromium())('the documentation in Chromium', { timeout: patience }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-docs-'));
  let browser: Browser;
  let page: Page;
  let address = '';
  let close = () => {};

  beforeAll(async () => {
    const words = ['scripts/build-site.mjs', '--documents', folder];
    const { status, stderr, stdout } = spawnSync(process.execPath, words, { encoding: 'utf8' });
    expect(status, stdout + stderr).toBe(0);
    ({ address, close } = await serveFolder(folder));
    browser = await chromium.launch({
      executablePath: chromiumPath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    });
  }, patience);
  afterAll(async () => {
    await browser?.close();
    close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(name: string, width = 1280): Promise<void> {
    await page?.close();
    page = await browser.newPage({ viewport: { width, height: 844 } });
    page.setDefaultTimeout(patience);
    await page.goto(`${address}docs/${name}`);
  }

  it('has no page that is wider than a phone', async () => {
    const files = readdirSync(join(folder, 'docs'), { recursive: true, encoding: 'utf8' });
    const names = files.filter((name) => name.endsWith('.html'));
    expect(names.length).toBeGreaterThan(1000);
    await open('documents/guide_auditing.html', 390);
    // Each page's content in the place of the first: to open every page takes minutes.
    const wide = await page.evaluate<[number, string][]>(`(async () => {
      const wide = [];
      for (const name of ${JSON.stringify(names)}) {
        const html = await (await fetch('../' + name)).text();
        const parsed = new DOMParser().parseFromString(html, 'text/html');
        const content = document.adoptNode(parsed.querySelector('.container-main'));
        document.querySelector('.container-main').replaceWith(content);
        const { scrollWidth } = document.documentElement;
        if (scrollWidth > 390) wide.push([scrollWidth, name]);
      }
      return wide;
    })()`);
    expect(wide).toEqual([]);
  });

  it('has tables that scroll inside themselves, by keys too', async () => {
    await open('documents/guide_tour.html', 390);
    const tables = await page.$$eval('table', (found) =>
      found.map((table) => {
        const around = table.parentElement!;
        return [around.className, around.getAttribute('tabindex'), around.scrollWidth > 390];
      }),
    );
    expect(tables.length).toBeGreaterThan(1);
    for (const [name, stop] of tables) expect([name, stop]).toEqual(['table', '0']);
    expect(tables.some(([, , scrolls]) => scrolls)).toBe(true);
  });

  it('lists guides, then the reference, then the theory, by their titles', async () => {
    await open('index.html');
    const links = page.locator('.site-menu a[href*="documents/"]');
    await links.first().waitFor({ state: 'attached' });
    const hrefs = await links.evaluateAll((found) =>
      found.map((link) => link.getAttribute('href')),
    );
    const listed = hrefs.map((href) =>
      /documents\/([^_]*)_(.*)\.html/.exec(href!)!.slice(1).join('/'),
    );
    expect(listed).toEqual(documentNames());
    expect((await links.first().textContent())!.trim()).toBe('Getting started');
  });

  it.each([
    ['LSE', 'guide'],
    ['gradients', 'guide'],
    ['tolerance', 'guide'],
    ['bounds', 'guide'],
    ['race', 'guide'],
    ['roofline', 'reference'],
    ['auditOutputs', ''],
  ])('finds a guide first, or what tells most, for %s', async (word, shelf) => {
    await open('index.html');
    await page.click('#tsd-search-trigger');
    await page.fill('#tsd-search-input', word);
    const results = page.locator('#tsd-search-results a');
    await results.first().waitFor();
    const hrefs = await results.evaluateAll((found) =>
      found.map((link) => link.getAttribute('href')!),
    );
    if (shelf !== '') expect(hrefs[0]).toContain(`documents/${shelf}_`);
    else expect(hrefs.some((href) => href.endsWith(`functions/src.${word}.html`))).toBe(true);
  });

  it('says under each result where its words are, and leads there', async () => {
    await open('index.html');
    await page.click('#tsd-search-trigger');
    await page.fill('#tsd-search-input', 'no tolerance');
    const results = page.locator('#tsd-search-results a:has(.excerpt)');
    await results.first().waitFor();
    expect(await results.count()).toBe(await page.locator('#tsd-search-results a').count());
    const marks = await page.locator('.excerpt mark').allInnerTexts();
    expect(marks.map((mark) => mark.toLowerCase())).toContain('tolerance');
    // Each leads to a place of its page that there is, where its excerpt is.
    const found = await page.evaluate<[string, string][]>(
      `[...document.querySelectorAll('#tsd-search-results a')]
        .map((link) => [link.href, link.querySelector('.excerpt').textContent])`,
    );
    expect(found.some(([href]) => href.includes('#'))).toBe(true);
    for (const [href, excerpt] of found) {
      const html = await (await page.request.get(href)).text();
      const anchor = new URL(href).hash.slice(1);
      if (anchor !== '') expect(html).toContain(`id="${anchor}"`);
      const words = excerpt.replace(/^[^:]*: /, '').match(/[a-z]{5,}/gi)!;
      expect(words.length).toBeGreaterThan(1);
      for (const word of words) expect(html).toContain(word);
    }
    await page.fill('#tsd-search-input', 'auditOutputs');
    const own = page.locator('#tsd-search-results a[href$="src.auditOutputs.html"] .excerpt');
    expect(await own.innerText()).toMatch(/^Judges outputs/);
  });

  it('finds every word of the project, and what looks like a language of searches', async () => {
    await open('index.html');
    const errors: string[] = [];
    page.on('pageerror', ({ message }) => errors.push(message));
    await page.click('#tsd-search-trigger');
    for (const words of ['flashproof', '--rows', 'flashproof audit', 'key:value', '"a pass"']) {
      await page.fill('#tsd-search-input', '');
      await page.locator('#tsd-search-results a').first().waitFor({ state: 'detached' });
      await page.fill('#tsd-search-input', words);
      await page.locator('#tsd-search-results a').first().waitFor();
    }
    expect(errors).toEqual([]);
  });

  it('calls entry points as programs import them', async () => {
    await open('index.html');
    const links = page.locator('.site-menu a[href*="modules/"]:not([href*="#"])');
    await links.first().waitFor({ state: 'attached' });
    const names = await links.evaluateAll((shown) => shown.map((link) => link.textContent.trim()));
    const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: object };
    const imported = Object.keys(exports).filter((name) => !name.endsWith('.json'));
    expect(names).toEqual(
      imported.map((name) => name.replace('.', 'flashproof').replace('/', '\u2215')).sort(),
    );
  });

  it('keeps the columns of outputs, and hints at what is beyond an edge', async () => {
    await open('documents/guide_getting-started.html', 390);
    const output = await page.evaluate(`(() => {
      const pre = document.querySelector('pre:has(> code.text)');
      const { whiteSpaceCollapse, textWrapMode, overflowX, backgroundAttachment } = getComputedStyle(pre);
      return [whiteSpaceCollapse, textWrapMode, overflowX, backgroundAttachment, pre.tabIndex];
    })()`);
    expect(output).toEqual(['preserve', 'nowrap', 'auto', 'local, local, scroll, scroll', 0]);
  });

  it('has a favicon, and colours no output of a command as a program', async () => {
    await open('documents/guide_getting-started.html');
    const icon = await page.getAttribute('link[rel=icon]', 'href');
    const { status } = await page.request.get(new URL(icon!, page.url()).href).then((got) => ({
      status: got.status(),
    }));
    expect(status).toBe(200);
    const output = page.locator('pre:has-text("PASS: the output and the LSE stay")').first();
    expect(await output.locator('[class^=hl-]').count()).toBe(0);
  });

  it.each(['light', 'dark'] as const)('shows a picture of the %s scheme', async (colorScheme) => {
    await page.close();
    page = await browser.newPage({ colorScheme });
    await page.goto(`${address}docs/index.html`);
    const source = await page.$eval(
      'picture img',
      (image) => (image as { currentSrc?: string }).currentSrc,
    );
    expect(source).toContain(`failure-${colorScheme}`);
  });
});
