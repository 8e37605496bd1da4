import tinycolor from 'tinycolor2'

export const run = () => [tinycolor('red').lighten(20).toHexString(), tinycolor('#ff8800').toHslString(), tinycolor.mix('red', 'blue', 30).toRgbString(), tinycolor.readability('#000', '#fff'), tinycolor('hsl(0, 100%, 50%)').toName(), tinycolor('teal').analogous().map((c) => c.toHexString())]
