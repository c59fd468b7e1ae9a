import { element, type Content } from '../layout/index.js';
import { style } from './style.js';

/** The content security policy of a page: it loads nothing except its own style. */
const policy = "default-src 'none'; style-src 'unsafe-inline'";

/** A page: its title, the version of the tool that made it, and its body. */
interface Page {
  readonly title: string;
  readonly version: string;
  readonly body: readonly Content[];
}

/** A whole HTML page that loads nothing, newline at its end. */
export function htmlPage({ title, version, body }: Page): string {
  const head = element(
    'head',
    {},
    element('meta', { charset: 'utf-8' }),
    element('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    element('meta', { 'http-equiv': 'Content-Security-Policy', content: policy }),
    element('meta', { name: 'generator', content: `flashproof ${version}` }),
    element('title', {}, title),
    element('style', {}, style),
  );
  const content = element('body', {}, ...body);
  return `<!doctype html>\n${element('html', { lang: 'en' }, head, content).html}\n`;
}

/** The banner of a verdict: its word, and the rest of its sentence. */
export function verdictBanner(word: string, sentence: string, isPass: boolean): Content {
  const rest = sentence.startsWith(word) ? sentence.slice(word.length) : `: ${sentence}`;
  return element(
    'div',
    { class: `verdict ${isPass ? 'pass' : 'fail'}`, id: 'verdict' },
    element('p', {}, element('span', { class: 'word' }, word), rest),
  );
}
