// Saves a figure: its SVG with the colours of the theme, the same as PNG, its data as JSON or CSV.
export interface FigureData {
  name: string; // of the file
  json: unknown;
  csv: string;
}

function save(name: string, type: string, body: BlobPart) {
  const url = URL.createObjectURL(new Blob([body], { type }));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// A drawing without the page's styles: variables of the theme replaced, background and font set.
export function standalone(svg: SVGSVGElement): string {
  const style = getComputedStyle(document.documentElement),
    box = svg.viewBox.baseVal;
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(box.width));
  copy.setAttribute('height', String(box.height));
  copy.setAttribute('font-family', 'Inter, system-ui, sans-serif');
  copy.querySelectorAll('[data-hover]').forEach(each => each.remove());
  const back = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  for (const [name, value] of Object.entries({ x: box.x, y: box.y, width: box.width, height: box.height, fill: 'var(--surface)' }))
    back.setAttribute(name, String(value));
  copy.prepend(back);
  return copy.outerHTML.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
}

async function png(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  await image.decode();
  const canvas = Object.assign(document.createElement('canvas'), { width: 2 * image.width, height: 2 * image.height });
  const context = canvas.getContext('2d')!;
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise(resolve => canvas.toBlob(blob => resolve(blob!), 'image/png'));
}

export function exportItems(data: FigureData, svg: () => SVGSVGElement | null) {
  return [
    { text: 'SVG', run: () => save(`${data.name}.svg`, 'image/svg+xml', standalone(svg()!)) },
    { text: 'PNG', run: async () => save(`${data.name}.png`, 'image/png', await png(standalone(svg()!))) },
    { text: 'JSON', run: () => save(`${data.name}.json`, 'application/json', JSON.stringify(data.json, null, 1)) },
    { text: 'CSV', run: () => save(`${data.name}.csv`, 'text/csv', data.csv) },
  ];
}
