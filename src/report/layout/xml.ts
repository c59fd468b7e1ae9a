import { plainText } from '../../words/index.js';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** A text for an XML attribute or element, on one line and of characters that XML 1.0 admits. */
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
