import { raw, type Html } from '../layout/index.js';

/** Colours of the two themes by variable. Text and lines that carry meaning have a contrast of 4.5 and 3. */
const light = {
  scheme: 'light',
  page: '#ffffff',
  panel: '#f5f7fa',
  text: '#1b2430',
  muted: '#525e6d',
  line: '#dbe1e8',
  outline: '#7b8796',
  link: '#0b53c1',
  pass: '#0a6b35',
  'pass-panel': '#e5f5ea',
  fail: '#b3122a',
  'fail-panel': '#fdebec',
  shade: 'rgb(27 36 48/.35)',
  bound: '#b5c9e6',
  found: '#1d5cb8',
  mark: '#c2185b',
  heat: [
    ...['#f2f6fb', '#d9e6f4', '#bad3ed', '#8fbae1', '#609bd1', '#3679b9', '#1c5a9a', '#0b396d'],
    ...['#f0893a', '#d3122d', '#7d0018', '#8a5cd6'],
  ],
};

const dark: typeof light = {
  scheme: 'dark',
  page: '#11151b',
  panel: '#1a2029',
  text: '#e6eaf0',
  muted: '#a6b1bf',
  line: '#2d3642',
  outline: '#77828f',
  link: '#82b4ff',
  pass: '#6fd796',
  'pass-panel': '#12291b',
  fail: '#ff8088',
  'fail-panel': '#35151a',
  shade: 'rgb(230 234 240/.4)',
  bound: '#3a4f6b',
  found: '#6aaeff',
  mark: '#ff78b0',
  heat: [
    ...['#18202a', '#1b304a', '#1d4770', '#22639f', '#2f84cb', '#55a5e6', '#8dc6f4', '#cde7fb'],
    ...['#d9822b', '#ff4d5b', '#ffc2c6', '#b48cf2'],
  ],
};

function variables({ scheme, heat, ...colors }: typeof light): string {
  return [
    `color-scheme:${scheme}`,
    ...Object.entries(colors).map(([name, color]) => `--${name}:${color}`),
    ...heat.map((color, level) => `--heat-${level}:${color}`),
  ].join(';');
}

const heatRules = light.heat
  .map((_, level) => `.heat-${level}{fill:var(--heat-${level})}`)
  .join('\n');

/**
 * Shades at the edges behind which a box can be scrolled: what covers them at the ends moves with the content. Boxes set --under to
 * their colour.
 */
const shades = ['90deg', '270deg']
  .flatMap((angle, i) => {
    const side = i === 0 ? '0' : '100%';
    const shade = (from: string, size: string, attachment: string) =>
      `linear-gradient(${angle},${from},transparent) ${side}/${size} no-repeat ${attachment}`;
    return [
      shade('var(--under) 40%', '36px 110%', 'local'),
      shade('var(--shade)', '12px 100%', 'scroll'),
    ];
  })
  // Those that cover come first.
  .sort((a, b) => Number(b.includes('local')) - Number(a.includes('local')))
  .join(',');

/**
 * The report's style sheet: fonts of the system, a light and a dark theme, one column on a phone, and
 * paper, which is always light and shows nothing folded.
 */
export const style: Html = raw(`
:root{${variables(light)}}
@media (prefers-color-scheme:dark){:root{${variables(dark)}}}
@media print{:root{${variables(light)}}}
${heatRules}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.skip{position:absolute;left:-999px}
.skip:focus{left:8px;top:8px;background:var(--page);padding:8px;z-index:1}
header,main,footer,nav{max-width:1160px;margin:0 auto;padding:0 20px}
header{padding-top:28px}
h1{font-size:1.15rem;margin:0 0 12px;overflow-wrap:anywhere;color:var(--muted);font-weight:600}
h2{font-size:1.35rem;line-height:1.25;margin:0 0 8px}
h3{font-size:1rem;margin:0 0 4px}
p{margin:0 0 12px;max-width:76ch;overflow-wrap:anywhere}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px;border-radius:2px}
.verdict{border-left:6px solid;border-radius:6px;padding:16px 20px;margin:0 0 16px}
.verdict p{font-size:1.3rem;line-height:1.4;margin:0;max-width:60ch;color:var(--text)}
.pass{border-color:var(--pass);background:var(--pass-panel)}
.fail{border-color:var(--fail);background:var(--fail-panel)}
.pass .word{color:var(--pass);font-weight:700}
.fail .word,.failure,.failure strong{color:var(--fail);font-weight:700}
.muted{color:var(--muted)}
.warning{font-weight:600}
th.gloss{color:var(--muted);font-weight:400;white-space:normal}
.first{display:grid;grid-template-columns:1fr auto;gap:8px 24px}
.glances{display:flex;gap:16px}
.glance{width:150px;font-size:.8rem;line-height:1.3;text-decoration:none;color:var(--muted)}
.glance svg{display:block;width:100%;height:auto;aspect-ratio:5/4;border:1px solid var(--outline);margin-bottom:4px}
dl.worst-row{display:flex;flex-wrap:wrap;gap:4px 28px;margin:0 0 12px}
dl.worst-row div{display:flex;gap:8px;align-items:baseline}
dl.figures-of-merit{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:16px 0}
dl.figures-of-merit div{display:flex;flex-direction:column;justify-content:space-between;background:var(--panel);border-radius:6px;padding:10px 14px}
dt{color:var(--muted);font-size:.85rem}
dd{margin:0;font-size:1.25rem;font-variant-numeric:tabular-nums}
nav ul{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;padding:10px 0;margin:8px 0 0;border-block:1px solid var(--line)}
nav a{display:inline-block;padding:2px 0}
section{padding:30px 0 6px}
section+section{border-top:1px solid var(--line)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));gap:24px 32px;margin:16px 0}
.wide{grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr))}
figure,.figure-note{margin:0;min-width:0}
figcaption p,.figure-note p,.note{color:var(--muted);font-size:.9rem;margin-bottom:6px}
svg.plot{display:block;width:100%;height:auto;font-size:12px;overflow:visible;color:var(--text)}
svg.plot text{white-space:pre}
details{margin:8px 0}
summary{cursor:pointer;color:var(--link);padding:4px 0;width:max-content;max-width:100%}
.table{overflow-x:auto;max-width:100%;margin:8px 0 16px}
.table,pre{background:${shades}}
.table{--under:var(--page)}
pre{--under:var(--panel)}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:4px 0}
figure+figure{margin-top:20px}
.figures>figure+figure{margin-top:0}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
th,td{padding:4px 14px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);font-weight:400}
thead th{color:var(--muted)}
td{white-space:nowrap}
td.long{white-space:normal;min-width:26ch;overflow-wrap:anywhere}
.number{text-align:right;white-space:nowrap}
tbody th{white-space:nowrap}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;padding:0;margin:8px 0;font-size:.85rem;color:var(--muted)}
.legend li{display:flex;align-items:center;gap:6px}
.swatch{border:1px solid var(--outline);border-radius:3px;flex:none}
table.tiles th,table.tiles td{padding:2px 5px}
table.tiles td{border:1px solid var(--line)}
span.swatch{width:16px;height:16px}
.tile-lost{background:var(--fail);color:var(--page)}
.tile-less{background:var(--fail-panel);color:var(--fail)}
.tile-more{background:var(--bound)}
.tile-doubled{background:var(--found);color:var(--page)}
.tile-there,.tile-trace{color:var(--muted)}
.tile-untold,.tile-unseen{color:var(--muted);background:repeating-linear-gradient(135deg,var(--line) 0 1px,transparent 1px 6px)}
.tile-unseen{background:var(--line)}
.swatch .bound{fill:var(--bound)}
.swatch .found{fill:var(--found)}
code,pre{font:.88rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background-color:var(--panel);border-radius:6px;padding:12px 14px;overflow-x:auto;margin:4px 0 16px}
.hash{overflow-wrap:anywhere}
footer{padding:20px;border-top:1px solid var(--line);margin-top:24px;color:var(--muted);font-size:.9rem}
@media (max-width:640px){.first{grid-template-columns:1fr}.glance{flex:1;max-width:240px}}
@media (max-width:480px){header,main,nav{padding-left:16px;padding-right:16px}.verdict p{font-size:1.1rem}section{padding-top:22px}}
@media print{
body{font-size:10.5pt}
nav,.skip,details:not([open],.printed){display:none}
details.printed::details-content{content-visibility:visible;display:block}
.printed summary{display:none}
header,main,footer{max-width:none;padding-left:0;padding-right:0}
figure,.table,pre,.verdict,dl{break-inside:avoid}
h2,h3{break-after:avoid}
.figures{grid-template-columns:1fr 1fr}
.table,pre{overflow:visible;background-image:none}
table{font-size:8pt}
th,td{padding-right:8px}
tbody th,thead th{white-space:normal;overflow-wrap:anywhere}
td{white-space:normal;overflow-wrap:anywhere}
td.long{min-width:0}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
`);
