import { plainText } from '../../words/index.js';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** A text for an XML attribute or element, on one line and of characters that XML 1.0 allows. */
export function escapeXml(text: string): string {
  return plainText(text).replace(/[&<>"']/g, (character) => entities[character]);
}

/** Attributes of an element, by name; their values are escaped when they are written. */
export type XmlAttributes = Readonly<Record<string, string | number>>;

/** An element, its content indented by two spaces; lines of content must be escaped already. */
export function xmlElement(
  name: string,
  attributes: XmlAttributes,
  content: readonly string[] = [],
): string {
  const opening = [
    name,
    ...Object.entries(attributes).map(([key, value]) => `${key}="${escapeXml(String(value))}"`),
  ];
  if (content.length === 0) return `<${opening.join(' ')}/>`;
  const lines = content.flatMap((line) => line.split('\n')).map((line) => `  ${line}`);
  return [`<${opening.join(' ')}>`, ...lines, `</${name}>`].join('\n');
}

/** A document with one root element: XML 1.0, UTF-8, a newline at its end. */
export function xmlDocument(root: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${root}\n`;
}

/** Finished HTML: only `element`, `join` and `raw` make it, so that everything else in a template is escaped. */
export interface Html {
  readonly html: string;
}

/** The content of an element: finished HTML, or text to escape. */
export type Content = Html | string | readonly Content[];

/** Marks a string as HTML: for constants, and for the output of another serializer. */
export function raw(html: string): Html {
  return { html };
}

/** Names of elements that have no end tag. */
const voidElements = new Set(['meta', 'br', 'link']);

function render(content: Content): string {
  if (typeof content === 'string') return escapeXml(content);
  return 'html' in content ? content.html : content.map(render).join('');
}

/** Several pieces as one. */
export function join(...content: readonly Content[]): Html {
  return raw(render(content));
}

/** An element; attributes are escaped, and `null` attributes are left out. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number | null>>,
  ...content: readonly Content[]
): Html {
  const opening = Object.entries(attributes)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => ` ${key}="${escapeXml(String(value))}"`)
    .join('');
  if (voidElements.has(name)) return raw(`<${name}${opening}>`);
  return raw(`<${name}${opening}>${render(content)}</${name}>`);
}

/** A line break within preformatted text, which the escaping of texts would show as \u{a}. */
export const breakLine: Html = { html: '\n' };
