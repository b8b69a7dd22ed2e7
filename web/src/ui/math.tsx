// Formulas: the subset of TeX that heed's lab writes, as MathML.
const symbols: Record<string, string> = {
  alpha: 'α',
  beta: 'β',
  gamma: 'γ',
  delta: 'δ',
  epsilon: 'ε',
  varepsilon: 'ε',
  theta: 'θ',
  lambda: 'λ',
  mu: 'μ',
  nu: 'ν',
  pi: 'π',
  rho: 'ρ',
  sigma: 'σ',
  tau: 'τ',
  phi: 'φ',
  varphi: 'φ',
  chi: 'χ',
  psi: 'ψ',
  omega: 'ω',
  eta: 'η',
  xi: 'ξ',
  kappa: 'κ',
  Gamma: 'Γ',
  Delta: 'Δ',
  Theta: 'Θ',
  Lambda: 'Λ',
  Pi: 'Π',
  Sigma: 'Σ',
  Phi: 'Φ',
  Psi: 'Ψ',
  Omega: 'Ω',
  ell: 'ℓ',
  partial: '∂',
  nabla: '∇',
  infty: '∞',
  emptyset: '∅',
};
const operators: Record<string, string> = {
  cdot: '·',
  times: '×',
  le: '≤',
  leq: '≤',
  ge: '≥',
  geq: '≥',
  ne: '≠',
  neq: '≠',
  approx: '≈',
  equiv: '≡',
  sim: '∼',
  propto: '∝',
  to: '→',
  rightarrow: '→',
  mapsto: '↦',
  Rightarrow: '⇒',
  in: '∈',
  notin: '∉',
  subset: '⊂',
  cup: '∪',
  cap: '∩',
  pm: '±',
  mp: '∓',
  ll: '≪',
  gg: '≫',
  lfloor: '⌊',
  rfloor: '⌋',
  lceil: '⌈',
  rceil: '⌉',
  langle: '⟨',
  rangle: '⟩',
  lVert: '‖',
  rVert: '‖',
  Vert: '‖',
  mid: '|',
  ldots: '…',
  dots: '…',
  cdots: '⋯',
  odot: '⊙',
  oplus: '⊕',
  otimes: '⊗',
  star: '⋆',
  ast: '∗',
  circ: '∘',
  top: '⊤',
  prime: '′',
  forall: '∀',
  exists: '∃',
  colon: ':',
  iff: '⇔',
};
const large: Record<string, string> = { sum: '∑', prod: '∏', int: '∫' };
const functions = new Set([
  'log',
  'exp',
  'max',
  'min',
  'sin',
  'cos',
  'tanh',
  'arg',
  'argmax',
  'argmin',
  'softmax',
  'det',
  'lim',
  'ln',
  'sup',
  'inf',
]);
const spaces: Record<string, string> = { ',': '0.17em', ';': '0.28em', ':': '0.22em', ' ': '0.25em', quad: '1em', qquad: '2em' };
const accents: Record<string, string> = { hat: '^', tilde: '~', bar: '¯', vec: '→', overline: '¯' };
const variants: Record<string, string> = {
  mathbf: 'bold',
  mathbb: 'double-struck',
  mathcal: 'script',
  mathrm: 'normal',
  boldsymbol: 'bold-italic',
};

const escape = (text: string) => text.replace(/[&<>]/g, each => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[each]!);

class Reader {
  private at = 0;
  private tokens: string[];
  constructor(tex: string) {
    this.tokens = tex.match(/\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|[\s\S]/g) ?? [];
  }

  // The next token that is not a space.
  private peek(): string | undefined {
    while (this.tokens[this.at]?.trim() === '') this.at++;
    return this.tokens[this.at];
  }

  list(end?: string): string {
    let out = '';
    for (let next = this.peek(); next !== undefined && next !== end; next = this.peek()) out += this.scripted();
    this.at++;
    return `<mrow>${out}</mrow>`;
  }

  private scripted(): string {
    const name = (this.peek() ?? '').slice(1);
    const isLarge = name in large,
      space = functions.has(name) ? '<mspace width="0.1em"/>' : ''; // after its scripts
    const base = this.one();
    let below = '',
      above = '';
    while (this.peek() === '_' || this.peek() === '^')
      if (this.tokens[this.at++] === '_') below = this.one();
      else above = this.one();
    const [under, over, both] = isLarge ? ['munder', 'mover', 'munderover'] : ['msub', 'msup', 'msubsup'];
    if (below && above) return `<${both}>${base}${below}${above}</${both}>${space}`;
    if (below) return `<${under}>${base}${below}</${under}>${space}`;
    return (above ? `<${over}>${base}${above}</${over}>` : base) + space;
  }

  private raw(): string {
    if (this.peek() !== '{') return this.tokens[this.at++] ?? '';
    let out = '';
    for (this.at++; this.at < this.tokens.length && this.tokens[this.at] !== '}'; this.at++) out += this.tokens[this.at];
    this.at++;
    return out;
  }

  private one(): string {
    const token = this.peek() ?? '';
    this.at++;
    if (token === '{') return this.list('}');
    if (/^\d/.test(token)) return `<mn>${token}</mn>`;
    if (/^[a-zA-Z]$/.test(token)) return `<mi>${token}</mi>`;
    if (!token.startsWith('\\'))
      return token === "'"
        ? '<mo>′</mo>'
        : `<mo${'()[]|'.includes(token) ? ' stretchy="false"' : ''}>${escape(token === '-' ? '−' : token)}</mo>`;
    const name = token.slice(1);
    if (name in spaces) return `<mspace width="${spaces[name]}"/>`;
    if (name in symbols) return `<mi>${symbols[name]}</mi>`;
    if (name in operators) return `<mo>${operators[name]}</mo>`;
    if (name in large) return `<mo movablelimits="false">${large[name]}</mo>`;
    if (functions.has(name)) return `<mi>${name}</mi>`;
    if (name === 'frac' || name === 'tfrac') return `<mfrac>${this.one()}${this.one()}</mfrac>`;
    if (name === 'sqrt') return `<msqrt>${this.one()}</msqrt>`;
    if (name in accents) return `<mover accent="true">${this.one()}<mo>${accents[name]}</mo></mover>`;
    if (name === 'text' || name === 'operatorname') return `<mtext>${escape(this.raw())}</mtext>`;
    if (name in variants) return `<mi mathvariant="${variants[name]}">${escape(this.raw())}</mi>`;
    if (name === 'left' || name === 'right') {
      const fence = this.peek() ?? '.';
      this.at++;
      return fence === '.' ? '' : `<mo>${escape(operators[fence.slice(1)] ?? fence.replace('\\', ''))}</mo>`;
    }
    return `<mo>${escape(name)}</mo>`; // \{ and the like
  }
}

export const mathML = (tex: string, display: boolean) => `<math${display ? ' display="block"' : ''}>${new Reader(tex).list()}</math>`;

// Formulas side by side, which may stand on several lines: \quad separates them, outside of braces.
function separate(tex: string): string[] {
  const out = [''];
  let depth = 0;
  for (const part of tex.split(/(\\q?quad(?![a-zA-Z])|\\.|[{}])/)) {
    depth += part === '{' ? 1 : part === '}' ? -1 : 0;
    if (depth === 0 && /^\\q?quad$/.test(part)) out.push('');
    else out[out.length - 1] += part;
  }
  return out.filter(part => part.trim() !== '');
}

export const Formula = ({ tex }: { tex: string }) => (
  <div
    class="formula"
    tabIndex={0}
    dangerouslySetInnerHTML={{
      __html: separate(tex)
        .map(part => mathML(part, true))
        .join(''),
    }}
  />
);

// A sentence with $formulas$.
export const Sentence = ({ text }: { text: string }) => (
  <span
    dangerouslySetInnerHTML={{
      __html: text
        .split('$')
        .map((part, i) => (i % 2 ? mathML(part, false) : escape(part)))
        .join(''),
    }}
  />
);
