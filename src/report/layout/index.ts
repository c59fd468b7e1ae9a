export { breakLine, type Content, element, type Html, join, raw } from './html.js';
export { quoteShellCommand, wrapShellCommand } from './shell-words.js';
export { joinLargest, notFiniteMark, sparkline } from './sparkline.js';
export {
  alignColumns,
  alignTextColumns,
  type Cell,
  cellRows,
  isSpanning,
  layoutTable,
  type Painter,
  type TableRow,
  type Tone,
  type TableOptions,
} from './table.js';
export { fitLines, wrapped, wrapText } from './wrap-text.js';
export { escapeXml, type XmlAttributes, xmlDocument, xmlElement } from './xml.js';
