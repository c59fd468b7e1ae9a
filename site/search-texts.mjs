/**
 * What the results of the documentation's search show beside names: a file of texts by the addresses of results, which
 * site/typedoc-search.js reads. Documents have a text for each heading, names of the reference that of their comment.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseHTML } from 'linkedom';

/** A comment says what a name is in its first sentences. In characters. */
const mostOfComment = 400;

const spaced = (text) => text.replaceAll(/\s+/g, ' ').trim();

/** The sections of a document's page: anchor, heading and text of each. */
export function sectionsOf(html) {
  const { document } = parseHTML(html);
  const content = document.querySelector('.tsd-typography');
  for (const mark of content.querySelectorAll('button, svg')) mark.remove();
  // Words of two blocks are two words.
  for (const block of content.querySelectorAll('td, th, li, p, br, pre')) block.before(' ');
  const sections = [];
  for (const element of content.children)
    if (/^H[1-6]$/.test(element.tagName))
      sections.push([element.id, spaced(element.textContent), '']);
    else if (sections.length > 0) sections.at(-1)[2] += ` ${element.textContent}`;
  return sections.map(([anchor, heading, text]) => [anchor, heading, spaced(text)]);
}

/** The comment of a name, without the marks of Markdown; '' where it has none. */
function commentOf(reflection) {
  const comments = [reflection, ...(reflection.signatures ?? []), reflection.getSignature];
  const comment = comments.find((one) => one?.hasComment())?.comment;
  const text = (comment?.summary ?? []).map((part) => part.text).join('');
  return spaced(text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', ''));
}

/** Writes the texts of results into the folder of a site that has been rendered. */
export function writeSearchTexts(folder, results, addressOf) {
  const texts = {};
  for (const reflection of results) {
    const address = addressOf(reflection);
    if (reflection.isDocument())
      texts[address] = sectionsOf(readFileSync(join(folder, address), 'utf8'));
    else {
      const comment = commentOf(reflection);
      if (comment !== '') texts[address] = [['', '', comment.slice(0, mostOfComment)]];
    }
  }
  const script = `window.searchTexts=${JSON.stringify(texts)};`;
  writeFileSync(join(folder, 'assets/search-texts.js'), script);
}
