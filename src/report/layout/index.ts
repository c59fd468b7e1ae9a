export { breakLine, type Content, element, type Html, join, raw } from './markup.js';
export { quoteShellCommand, wrapShellCommand } from './shell-words.js';
export { joinLargest, notFiniteMark, sparkline } from './sparkline.js';
export {
  alignColumns,
  alignTextColumns,
  cellRows,
  cellText,
  heading,
  isSpanning,
  layoutColumns,
  layoutTable,
  type Alignment,
  type Cell,
  type Painter,
  type Section,
  type TableRow,
  type Tone,
} from './table.js';
export { fitLines, wrapAtSpaces, wrapText } from './wrap-text.js';
export { escapeXml, type XmlAttributes, xmlDocument, xmlElement } from './markup.js';
