// Pictures as files: what stands in a figure, canvases and SVG, as one SVG or PNG; tables and rows as CSV.

const COPIED = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'fill-opacity', 'stroke-opacity', 'font-size', 'font-family', 'font-weight', 'text-anchor', 'dominant-baseline', 'paint-order', 'stroke-linejoin'];

function styled(source: SVGElement): SVGElement {
  const copy = source.cloneNode(true) as SVGElement;
  const [from, to] = [[source, ...source.querySelectorAll('*')], [copy, ...copy.querySelectorAll('*')]];
  from.forEach((element, at) => {
    const computed = getComputedStyle(element);
    for (const name of COPIED) to[at]!.setAttribute(name, computed.getPropertyValue(name));
    to[at]!.removeAttribute('class');
    to[at]!.removeAttribute('style');
  });
  return copy;
}

/** The picture in an element as the text of one SVG. */
export function svgText(element: HTMLElement): string {
  const box = element.getBoundingClientRect();
  const parts: string[] = [];
  let [width, height] = [0, 0]; // of what is saved: controls that stand in the element are not
  for (const child of element.querySelectorAll<HTMLElement | SVGSVGElement>('canvas, svg')) {
    if (child.closest('[data-export="no"]') || child.parentElement?.closest('svg')) continue;
    const at = child.getBoundingClientRect();
    if (at.width === 0 || at.height === 0) continue;
    const [x, y] = [at.left - box.left, at.top - box.top];
    [width, height] = [Math.max(width, x + at.width), Math.max(height, y + at.height)];
    if (child instanceof HTMLCanvasElement) {
      const pixelated = getComputedStyle(child).imageRendering === 'pixelated' ? ' style="image-rendering:pixelated"' : '';
      parts.push(`<image x="${x}" y="${y}" width="${at.width}" height="${at.height}"${pixelated} preserveAspectRatio="none" href="${child.toDataURL()}"/>`);
    } else {
      const copy = styled(child as SVGElement);
      copy.setAttribute('x', String(x));
      copy.setAttribute('y', String(y));
      copy.setAttribute('width', String(at.width));
      copy.setAttribute('height', String(at.height));
      parts.push(new XMLSerializer().serializeToString(copy));
    }
  }
  parts.push(...legendParts(element, box));
  const background = getComputedStyle(document.body).backgroundColor;
  const size = `width="${Math.ceil(width)}" height="${Math.ceil(height)}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}><rect width="100%" height="100%" fill="${background}"/>${parts.join('')}</svg>`;
}

/** Swatches and words of the legends, which are no SVG on the page. */
function legendParts(element: HTMLElement, box: DOMRect): string[] {
  const escape = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const place = (part: Element) => {
    const at = part.getBoundingClientRect();
    return { x: at.left - box.left, y: at.top - box.top, width: at.width, height: at.height };
  };
  const swatches = [...element.querySelectorAll('.legends i:not(.ramp)')].map((part) => {
    const { x, y, width, height } = place(part);
    const style = getComputedStyle(part);
    return `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${style.borderRadius === '50%' ? width / 2 : 2}" fill="${style.backgroundColor}"/>`;
  });
  const words = [...element.querySelectorAll<HTMLElement>('.legends bdi')].map((part) => {
    const { x, y, height } = place(part);
    const style = getComputedStyle(part);
    return `<text x="${x}" y="${y + 0.75 * height}" font-family='${style.fontFamily.replaceAll("'", '"')}' font-size="${style.fontSize}" font-weight="${style.fontWeight}" fill="${style.color}">${escape(part.textContent ?? '')}</text>`;
  });
  return [...swatches, ...words];
}

export function saveSvg(element: HTMLElement, name: string): void {
  save(new Blob([svgText(element)], { type: 'image/svg+xml' }), `${name}.svg`);
}

export async function savePng(element: HTMLElement, name: string): Promise<void> {
  const url = URL.createObjectURL(new Blob([svgText(element)], { type: 'image/svg+xml' }));
  try {
    const picture = new Image();
    picture.src = url;
    await picture.decode();
    const canvas = document.createElement('canvas');
    canvas.width = picture.width * 2;
    canvas.height = picture.height * 2;
    canvas.getContext('2d')!.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done));
    if (blob) save(blob, `${name}.png`);
  } finally {
    URL.revokeObjectURL(url);
  }
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A cell of CSV: quoted where it must be, and never a formula for a spreadsheet. */
export function csvCell(value: string | number): string {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
  const safe = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveCsv(header: string[], rows: Iterable<(string | number)[]>, name: string): void {
  const lines = [header.map(csvCell).join(',')];
  for (const row of rows) lines.push(row.map(csvCell).join(','));
  save(new Blob([lines.join('\n') + '\n'], { type: 'text/csv' }), `${name}.csv`);
}
